#include "server/config/server_config.h"

#include <utility>

namespace wan::server {

std::vector<DeviceGroup> GroupsOf(const ServerConfig& config) {
  if (!config.groups.empty()) return config.groups;
  std::vector<DeviceGroup> groups;
  for (const std::string& text : config.devices) {
    absl::StatusOr<DeviceGroup> group = ParseDeviceGroup(text);
    if (group.ok()) groups.push_back(*std::move(group));
  }
  if (groups.empty()) groups.push_back({{"cpu"}});
  return groups;
}

std::vector<std::string> DevicesOf(const ServerConfig& config) {
  std::vector<std::string> devices;
  for (const DeviceGroup& group : GroupsOf(config)) devices.push_back(DevicesText(group));
  return devices;
}

}  // namespace wan::server
