// Applies changed settings to a running server.
#pragma once

#include <string>
#include <vector>

#include "server/config/server_config.h"

namespace wan::server {

// Keys of settings, in the order of the table.
struct ConfigChange {
  std::vector<std::string> reloaded;       // differ, and were taken over
  std::vector<std::string> needs_restart;  // differ, and stay as they were
};

// Copies the settings that may change while a server runs (Setting::reloads) from `next` into
// `config`. Both are complete.
ConfigChange TakeOver(const ServerConfig& next, ServerConfig& config);

}  // namespace wan::server
