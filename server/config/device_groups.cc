#include "server/config/device_groups.h"

#include <algorithm>
#include <optional>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "server/config/setting_kinds.h"

namespace wan::server {
namespace {

constexpr std::string_view kCpu = "cpu";
constexpr std::string_view kCuda = "cuda:";

bool IsCuda(std::string_view device) { return device.substr(0, kCuda.size()) == kCuda; }

absl::Status NotDevices(std::string_view text) {
  return MustBe(text,
                "cpu or cuda:N, with N from 0, or several devices of one group, as in cuda:0,1");
}

// Returns the name of a device; "1" means "cuda:1" if `behind_cuda` is true. Returns nullopt if the
// text names no device.
std::optional<std::string> NameOfDevice(std::string_view part, bool behind_cuda) {
  if (part == kCpu) return std::string(part);
  const bool cuda = IsCuda(part);
  if (!cuda && !behind_cuda) return std::nullopt;
  const std::optional<unsigned> number = Parsed<unsigned>(cuda ? part.substr(kCuda.size()) : part);
  if (!number.has_value()) return std::nullopt;
  return absl::StrCat(std::string(kCuda), *number);
}

bool NamedIn(const DeviceGroup& group, std::string_view model) {
  return std::find(group.models.begin(), group.models.end(), model) != group.models.end();
}

}  // namespace

absl::StatusOr<DeviceGroup> ParseDeviceGroup(std::string_view text) {
  DeviceGroup group;
  const size_t equals = text.find('=');
  std::set<std::string> gpus;
  for (const auto part : absl::StrSplit(std::string(text.substr(0, equals)), ',')) {
    const bool behind_cuda = !group.devices.empty() && IsCuda(group.devices.back());
    const std::optional<std::string> device =
        NameOfDevice(std::string_view(part.data(), part.size()), behind_cuda);
    if (!device.has_value()) return NotDevices(text);
    if (!group.devices.empty() && IsCuda(*device) != behind_cuda) {
      return absl::InvalidArgumentError(absl::StrCat(
          "is '", std::string(text), "'; all devices of a group must be GPUs, or all must be cpu"));
    }
    if (IsCuda(*device) && !gpus.insert(*device).second) {
      return absl::InvalidArgumentError(absl::StrCat(
          "names ", *device, " twice in '", std::string(text), "'; a group has each GPU once"));
    }
    group.devices.push_back(*device);
  }
  if (equals == std::string_view::npos) return group;
  for (const auto part : absl::StrSplit(std::string(text.substr(equals + 1)), ',')) {
    std::string model(part.data(), part.size());
    if (model.empty()) {
      return MustBe(text, "DEVICE=MODEL,MODEL with the names of models, or DEVICE alone");
    }
    if (NamedIn(group, model)) {
      return absl::InvalidArgumentError(absl::StrCat("names the model '", model, "' twice in '",
                                                     std::string(text), "'; name it once"));
    }
    group.models.push_back(std::move(model));
  }
  return group;
}

std::string DevicesText(const DeviceGroup& group) {
  std::string text;
  for (const std::string& device : group.devices) {
    if (text.empty()) {
      text = device;
    } else {
      absl::StrAppend(&text, ",", IsCuda(device) ? device.substr(kCuda.size()) : device);
    }
  }
  return text;
}

std::string ToString(const DeviceGroup& group) {
  return group.models.empty()
             ? DevicesText(group)
             : absl::StrCat(DevicesText(group), "=", absl::StrJoin(group.models, ","));
}

absl::Status CheckDeviceGroups(const std::vector<DeviceGroup>& groups) {
  std::set<std::string> gpus;
  for (const DeviceGroup& group : groups) {
    if (IsCuda(group.devices.front()) != IsCuda(groups.front().devices.front())) {
      return absl::InvalidArgumentError(
          absl::StrCat("names ", groups.front().devices.front(), " and ", group.devices.front(),
                       "; all groups must have GPUs, or all must have cpu"));
    }
    for (const std::string& device : group.devices) {
      if (IsCuda(device) && !gpus.insert(device).second) {
        return absl::InvalidArgumentError(
            absl::StrCat("names ", device, " in two groups; a GPU belongs to one group"));
      }
    }
  }
  return absl::OkStatus();
}

bool MayHave(const std::vector<DeviceGroup>& groups, size_t index, std::string_view model) {
  if (NamedIn(groups[index], model)) return true;
  return groups[index].models.empty() &&
         std::none_of(groups.begin(), groups.end(),
                      [&](const DeviceGroup& group) { return NamedIn(group, model); });
}

}  // namespace wan::server
