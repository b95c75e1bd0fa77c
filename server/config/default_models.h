// The model that wanserve loads when the settings name none.
#pragma once

#include <filesystem>
#include <vector>

#include "engine/api/engine.h"

namespace wan::server {

// Returns the demo model, under the name "demo", if its checkpoint is where builds and images put
// it: in ../share/wanserve/demo relative to the folder of `executable`. Otherwise returns nothing.
std::vector<ModelSpec> DefaultModels(const std::filesystem::path& executable);

}  // namespace wan::server
