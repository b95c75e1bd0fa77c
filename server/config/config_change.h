// Applies changed settings to a running server.
#pragma once

#include <string>
#include <vector>

#include "server/config/server_config.h"

namespace wan::server {

// Keys of the settings that have changed, in the order of the table of settings.
struct ConfigChange {
  std::vector<std::string> reloaded;       // settings that were changed and applied
  std::vector<std::string> needs_restart;  // settings that were changed but not applied
};

// Copies the settings that may change while a server runs (Setting::reloads) from `next` into
// `config`. Both must have been completed (Complete).
ConfigChange TakeOver(const ServerConfig& next, ServerConfig& config);

}  // namespace wan::server
