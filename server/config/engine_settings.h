// The rows of the table of settings that say which models there are, on which devices, and how
// engines compute (EngineOptions).
#pragma once

#include <vector>

#include "server/config/settings.h"

namespace wan::server {

// In the order of --help.
std::vector<Setting> EngineSettings();

}  // namespace wan::server
