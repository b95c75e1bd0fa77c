// Parses device groups: devices that compute one video together, and their models.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace wan::server {

// A group runs one job at a time on all of its devices.
struct DeviceGroup {
  std::vector<std::string> devices;  // {"cuda:0", "cuda:1"}; {"cpu"}
  // The models that the group may load; empty: every model that no group's list names.
  std::vector<std::string> models = {};
};

// Parses a group in the form of the settings `device` and `groups`: "cuda:0,1", "cpu", or with
// models "cuda:0,1=ti2v-5b,demo". INVALID_ARGUMENT if the devices are of two kinds or a GPU is
// named twice; the message continues a sentence that begins with the setting.
absl::StatusOr<DeviceGroup> ParseDeviceGroup(std::string_view text);

// Inverse of ParseDeviceGroup.
std::string ToString(const DeviceGroup& group);

// Returns only the devices: "cuda:0,1".
std::string DevicesText(const DeviceGroup& group);

// Checks that all groups have devices of one kind and no GPU is in two groups. The message of
// INVALID_ARGUMENT continues a sentence as above.
absl::Status CheckDeviceGroups(const std::vector<DeviceGroup>& groups);

// Whether the group of this index may load the model: its list names the model, or it has no list
// and no group's list names the model.
bool MayHave(const std::vector<DeviceGroup>& groups, size_t index, std::string_view model);

}  // namespace wan::server
