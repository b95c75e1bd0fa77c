// The rows of the settings table for models, devices and EngineOptions.
#pragma once

#include <vector>

#include "server/config/settings.h"

namespace wan::server {

// Returns the rows in the order of --help.
std::vector<Setting> EngineSettings();

}  // namespace wan::server
