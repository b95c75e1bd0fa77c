// Applies changed settings to a running server.
#pragma once

#include <string>
#include <vector>

#include "server/config/server_config.h"

namespace wan::server {

// Keys of settings, in the order of the table.
struct ConfigChange {
  std::vector<std::string> reloaded;       // changed and applied
  std::vector<std::string> needs_restart;  // changed but not applied
};

// Copies the settings that may change while a server runs (Setting::reloads) from `next` into
// `config`. Complete must have been called for both.
ConfigChange TakeOver(const ServerConfig& next, ServerConfig& config);

}  // namespace wan::server
