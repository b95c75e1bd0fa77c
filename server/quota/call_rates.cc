#include "server/quota/call_rates.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "server/conversion/errors.h"

namespace wan::server {
namespace {

constexpr size_t kFewestToForget = 1024;
constexpr absl::Duration kTellAgain = absl::Minutes(1);
// The lowest limit that quota_file.cc accepts is one call in this time, so calls that are older
// never count.
constexpr absl::Duration kIdle = absl::Seconds(1000);

}  // namespace

CallRates::Decision CallRates::Admit(const std::string& principal, double per_second) {
  const auto at_once = static_cast<size_t>(std::max(std::floor(per_second), 1.0));
  const absl::Duration window = absl::Seconds(static_cast<double>(at_once) / per_second);
  const absl::Time now = clock_.Now();
  absl::MutexLock lock(&mutex_);
  if (callers_.size() >= forget_at_ && !callers_.contains(principal)) ForgetIdle(now);
  Caller& caller = callers_[principal];
  std::deque<absl::Time>& calls = caller.calls;
  // Forget the oldest calls if the limit was lowered.
  while (calls.size() > at_once) calls.pop_front();
  if (calls.size() < at_once || now - calls.front() >= window) {
    if (calls.size() == at_once) calls.pop_front();
    calls.push_back(now);
    return {};
  }
  Decision decision;
  decision.first_refused = now - caller.told >= kTellAgain;
  if (decision.first_refused) caller.told = now;
  QuotaExcess excess{principal, "calls_per_second"};
  excess.used = absl::StrCat(at_once);
  excess.limit = absl::StrCat(per_second);
  excess.what = absl::StrCat("has made ", at_once, at_once == 1 ? " call" : " calls", " within ",
                             absl::FormatDuration(now - calls.front()));
  excess.retry_delay = absl::Ceil(window - (now - calls.front()), absl::Milliseconds(1));
  decision.status = QuotaExceededError(excess);
  return decision;
}

size_t CallRates::size() const {
  absl::MutexLock lock(&mutex_);
  return callers_.size();
}

void CallRates::ForgetIdle(absl::Time now) {
  std::erase_if(callers_, [now](const auto& entry) {
    const Caller& caller = entry.second;
    return (caller.calls.empty() || now - caller.calls.back() >= kIdle) &&
           now - caller.told >= kTellAgain;
  });
  forget_at_ = std::max(kFewestToForget, 2 * callers_.size());
}

}  // namespace wan::server
