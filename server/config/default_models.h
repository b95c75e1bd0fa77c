// What a server serves that was told of no model.
#pragma once

#include <filesystem>
#include <vector>

#include "engine/api/engine.h"

namespace wan::server {

// The demo model under the name "demo", if it lies where builds and images put it: in
// ../share/wanserve/demo of the folder that `executable` is in. Otherwise none.
std::vector<ModelSpec> DefaultModels(const std::filesystem::path& executable);

}  // namespace wan::server
