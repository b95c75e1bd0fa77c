// Parses device groups: the devices that compute one video together, and the models that they may
// load.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace wan::server {

// A group runs one job at a time on all of its devices.
struct DeviceGroup {
  std::vector<std::string> devices;  // for example {"cuda:0", "cuda:1"} or {"cpu"}
  // The models that the group may load; empty: every model that no group's list names.
  std::vector<std::string> models = {};
};

// Parses a group in the form of the settings `device` and `groups`: "cuda:0,1", "cpu", or with
// models "cuda:0,1=ti2v-5b,demo". Fails with INVALID_ARGUMENT if the devices are of two kinds or a
// GPU is named twice; the message continues a sentence that begins with the setting's name.
absl::StatusOr<DeviceGroup> ParseDeviceGroup(std::string_view text);

// The inverse of ParseDeviceGroup.
std::string ToString(const DeviceGroup& group);

// Returns the group's devices as text, without its models: "cuda:0,1".
std::string DevicesText(const DeviceGroup& group);

// Checks that either all groups consist of GPUs or all of the CPU, and that no GPU is in two
// groups. As with ParseDeviceGroup, the message of INVALID_ARGUMENT continues a sentence.
absl::Status CheckDeviceGroups(const std::vector<DeviceGroup>& groups);

// Whether the group `groups[index]` may load the model: its list names the model, or it has no list
// and no other group's list names the model.
bool MayHave(const std::vector<DeviceGroup>& groups, size_t index, std::string_view model);

}  // namespace wan::server
