#include "server/quota/recent_use.h"

#include <algorithm>
#include <cmath>

namespace wan::server {
namespace {

constexpr size_t kFewestToForget = 1024;
// RecentUse may forget principals whose decayed use is less than this.
constexpr double kNegligibleSeconds = 0.01;

// Returns the weight of a second of device time that was used `age` ago; at most 1 even if `age` is
// negative.
double Weight(absl::Duration age) {
  return std::exp2(-absl::FDivDuration(std::max(age, absl::ZeroDuration()), RecentUse::kHalfLife));
}

}  // namespace

void RecentUse::Add(const std::string& principal, absl::Duration held, absl::Time when) {
  if (uses_.size() >= forget_at_ && !uses_.contains(principal)) ForgetNegligible(when);
  Use& use = uses_.try_emplace(principal, Use{0, when}).first->second;
  const absl::Time at = std::max(use.at, when);
  use.seconds = use.seconds * Weight(at - use.at) + absl::ToDoubleSeconds(held) * Weight(at - when);
  use.at = at;
}

absl::Duration RecentUse::Of(const std::string& principal, absl::Time now) const {
  const auto found = uses_.find(principal);
  if (found == uses_.end()) return absl::ZeroDuration();
  const Use& use = found->second;
  return absl::Seconds(std::max(use.seconds * Weight(now - use.at), 0.0));
}

void RecentUse::ForgetNegligible(absl::Time now) {
  std::erase_if(uses_, [now](const auto& entry) {
    return entry.second.seconds * Weight(now - entry.second.at) < kNegligibleSeconds;
  });
  forget_at_ = std::max(kFewestToForget, 2 * uses_.size());
}

}  // namespace wan::server
