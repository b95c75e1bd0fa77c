#include "server/store/canary_record.h"

#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "engine/api/errors.h"

namespace wan::server {
namespace {

// Lines of "DIGEST SETUP".
constexpr char kFile[] = "device_canaries";

}  // namespace

absl::Status CompareCanary(const std::filesystem::path& data_dir, const DeviceCanary& canary) {
  const std::filesystem::path path = data_dir / kFile;
  std::ifstream kept(path);
  for (std::string line; std::getline(kept, line);) {
    const size_t cut = line.find(' ');
    if (cut == std::string::npos || line.substr(cut + 1) != canary.setup) continue;
    const std::string digest = line.substr(0, cut);
    if (digest == canary.digest) return absl::OkStatus();
    return DeviceLostError(absl::StrCat(
        "the device computes other bits than before: its canary is ", canary.digest, ", ",
        path.string(), " has ", digest, " for ", canary.setup,
        ". If nothing was repaired or replaced since, the card is broken; if something was, "
        "remove that line"));
  }
  std::ofstream more(path, std::ios::app);
  more << canary.digest << ' ' << canary.setup << '\n';
  more.close();
  if (!more) {
    return absl::UnavailableError(
        absl::StrCat(path.string(), ": the device's canary could not be written"));
  }
  return absl::OkStatus();
}

}  // namespace wan::server
