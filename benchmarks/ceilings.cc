#include "benchmarks/ceilings.h"

#include <algorithm>
#include <fstream>

#include "absl/strings/str_cat.h"

namespace wan {
namespace {

using client::reports::RateOf;

// Adds the seconds that `amount` takes at `rate` to `sum`. Returns false if the rate is needed but
// not known.
bool AddSeconds(double amount, double rate, double& sum) {
  if (amount <= 0) return true;
  if (rate <= 0) return false;
  sum += amount / rate;
  return true;
}

}  // namespace

std::optional<double> FloorSeconds(const Ceilings& ceilings, const Work& work) {
  double computing = 0;
  double moving = 0;
  double uploading = 0;
  double downloading = 0;
  const bool known =
      AddSeconds(work.product_flop, RateOf(ceilings.products, work.precision), computing) &&
      AddSeconds(work.attention_flop, RateOf(ceilings.attention, work.precision), computing) &&
      AddSeconds(work.bytes, ceilings.memory, moving) &&
      AddSeconds(work.upload_bytes, ceilings.upload, uploading) &&
      AddSeconds(work.download_bytes, ceilings.download, downloading);
  const double floor = std::max({computing, moving, uploading, downloading});
  return known && floor > 0 ? std::optional(floor) : std::nullopt;
}

absl::Status WriteCeilings(const std::string& path, const Ceilings& ceilings,
                           const std::vector<BenchRow>& rows) {
  std::vector<std::string> lines;
  for (const BenchRow& row : rows) lines.push_back(ToJsonLine(row));
  std::ofstream file(path, std::ios::trunc);
  file << ToJson(ceilings, lines) << std::endl;
  return file.good() ? absl::OkStatus()
                     : absl::UnavailableError(absl::StrCat("cannot write '", path, "'"));
}

}  // namespace wan
