#include "server/store/canary_record.h"

#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "engine/api/errors.h"

namespace wan::server {
namespace {

// The name of a text file with lines of the form "DIGEST SETUP".
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
        "the device computes other bits than before: its canary is ", canary.digest, ", but ",
        path.string(), " has ", digest, " for ", canary.setup,
        "; if the card was repaired or replaced since, remove that line, otherwise the card is "
        "broken"));
  }
  std::ofstream more(path, std::ios::app);
  more << canary.digest << ' ' << canary.setup << '\n';
  more.close();
  if (!more) {
    return absl::UnavailableError(absl::StrCat("the device's canary could not be written to ",
                                               path.string(),
                                               "; the server must be able to write this file"));
  }
  return absl::OkStatus();
}

}  // namespace wan::server
