// Device groups: the devices that make one video together, and their models.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace wan::server {

// One group: it runs one job at a time, on all of its devices.
struct DeviceGroup {
  std::vector<std::string> devices;  // {"cuda:0", "cuda:1"}; {"cpu"}
  // The models that the group may have; empty: every model that no other group's list names.
  std::vector<std::string> models = {};
};

// Reads a group as the settings `device` and `groups` write it: "cuda:0,1", "cpu", and with models
// "cuda:0,1=ti2v-5b,demo". INVALID_ARGUMENT, with a message that continues a sentence that begins
// with the setting, if the devices are of two kinds, or one GPU is named twice.
absl::StatusOr<DeviceGroup> ParseDeviceGroup(std::string_view text);

// Returns the text that ParseDeviceGroup reads as this group.
std::string ToString(const DeviceGroup& group);

// Returns the part of the text that names the devices: "cuda:0,1".
std::string DevicesText(const DeviceGroup& group);

// Checks all groups together: all must be of one kind, and none may name a GPU of another. The
// message of INVALID_ARGUMENT continues a sentence, as above.
absl::Status CheckDeviceGroups(const std::vector<DeviceGroup>& groups);

// Whether the group of this index may have the model: one whose list names it, or, if no group's
// list does, one without a list.
bool MayHave(const std::vector<DeviceGroup>& groups, size_t index, std::string_view model);

}  // namespace wan::server
