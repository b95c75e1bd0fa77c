// Finds the model that wanserve loads if the settings name none.
#pragma once

#include <filesystem>
#include <vector>

#include "engine/api/engine.h"

namespace wan::server {

// Returns the demo model, named "demo", if its checkpoint is in ../share/wanserve/demo relative to
// the folder of `executable`, where builds and images put it. Otherwise returns an empty list.
std::vector<ModelSpec> DefaultModels(const std::filesystem::path& executable);

}  // namespace wan::server
