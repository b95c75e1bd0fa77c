#include "engine/device/device_name.h"

#include <charconv>
#include <string>

#include "absl/strings/str_cat.h"

namespace wan {

absl::StatusOr<std::optional<int>> ParseDeviceName(std::string_view name) {
  constexpr std::string_view kCudaPrefix = "cuda:";
  if (name == "cpu") return std::nullopt;
  if (name.substr(0, kCudaPrefix.size()) == kCudaPrefix) {
    const std::string_view digits = name.substr(kCudaPrefix.size());
    int gpu = -1;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), gpu);
    if (error == std::errc() && end == digits.data() + digits.size() && gpu >= 0) return gpu;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("device is '", std::string(name), "'; must be cpu or cuda:N"));
}

absl::Status CheckGpuExists(int gpu, int count) {
  if (gpu < count) return absl::OkStatus();
  const std::string present = count == 0   ? "no GPU"
                              : count == 1 ? "only cuda:0"
                                           : absl::StrCat("cuda:0 to cuda:", count - 1);
  return absl::UnavailableError(
      absl::StrCat("device cuda:", gpu, " does not exist; the driver offers ", present));
}

}  // namespace wan
