#include "server/config/config_change.h"

#include "server/config/settings.h"

namespace wan::server {

ConfigChange TakeOver(const ServerConfig& next, ServerConfig& config) {
  ConfigChange change;
  for (const Setting& setting : Settings()) {
    const std::vector<std::string> values = setting.get(next);
    if (values == setting.get(config)) continue;
    const bool taken = setting.reloads && setting.set(values, config).ok();
    (taken ? change.reloaded : change.needs_restart).emplace_back(setting.key);
  }
  return change;
}

}  // namespace wan::server
