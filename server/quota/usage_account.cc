#include "server/quota/usage_account.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "server/conversion/convert.h"
#include "server/conversion/errors.h"

namespace wan::server {
namespace {

constexpr size_t kFewestToForget = 1024;
constexpr absl::Duration kShortestRetry = absl::Seconds(1);
// The device time that the account assumes for a job without an estimate.
constexpr absl::Duration kLeast = absl::Nanoseconds(1);

std::string Jobs(int count) { return absl::StrCat(count, count == 1 ? " job" : " jobs"); }

// Rounds up to whole seconds, so that no caller retries too early.
absl::Duration Retry(absl::Duration delay) {
  return std::max(absl::Ceil(delay, absl::Seconds(1)), kShortestRetry);
}

std::string Seconds(absl::Duration duration) {
  return absl::StrCat(absl::ToDoubleSeconds(absl::Ceil(duration, absl::Milliseconds(100))));
}

}  // namespace

absl::Status UsageAccount::Admit(const wan::v1::Quota& quota, const std::string& owner,
                                 const Demand& demand, absl::Time now,
                                 const TimeUntilBegun& time_until_begun) const {
  const auto found = principals_.find(owner);
  const Principal nobody;
  const Principal& principal = found == principals_.end() ? nobody : found->second;

  const int queued = principal.jobs - principal.running;
  if (quota.has_queued_jobs() && queued + demand.jobs > quota.queued_jobs()) {
    QuotaExcess excess{owner, "queued_jobs", absl::StrCat(queued),
                       absl::StrCat(quota.queued_jobs())};
    excess.what =
        absl::StrCat("has ", Jobs(queued), " in the queue and asks for ", demand.jobs, " more");
    if (demand.jobs <= quota.queued_jobs()) {
      excess.retry_delay = Retry(time_until_begun(queued + demand.jobs - quota.queued_jobs()));
    } else {
      excess.remedy =
          quota.queued_jobs() == 0
              ? "no jobs are accepted until an administrator changes it"
              : absl::StrCat("ask for at most ", Jobs(quota.queued_jobs()), " at a time");
    }
    return QuotaExceededError(excess);
  }

  if (!quota.has_device_seconds()) return absl::OkStatus();
  const absl::Duration limit = absl::Seconds(quota.device_seconds());
  const absl::Duration used = principal.window.Sum(now);
  const absl::Duration taken = used + principal.reserved;
  // If the estimate is unknown, refuse the call only if the quota is used up.
  const absl::Duration asked = std::max(demand.estimate, kLeast);
  if (taken + asked <= limit) return absl::OkStatus();
  QuotaExcess excess{owner, "device_seconds", Seconds(taken), absl::StrCat(quota.device_seconds())};
  excess.what = absl::StrCat(
      "has used ", Seconds(used),
      " device seconds in the last 24 hours, its unfinished jobs are "
      "estimated to take ",
      Seconds(principal.reserved), " more, and this call ",
      demand.estimate > absl::ZeroDuration() ? Seconds(demand.estimate) : "an unknown time");
  if (asked > limit) {
    excess.remedy = quota.device_seconds() == 0
                        ? "no jobs are accepted until an administrator changes it"
                        : "ask for less: fewer steps, fewer frames, a smaller size or fewer jobs";
  } else {
    const absl::Duration room = limit - asked - principal.reserved;
    // If even the reserved time of unfinished jobs exceeds the quota, that time must first leave
    // the window, which takes about a day.
    excess.retry_delay = Retry(room < absl::ZeroDuration() ? UseWindow::kLength
                                                           : principal.window.TimeUntil(room, now));
  }
  return QuotaExceededError(excess);
}

bool UsageAccount::MayRun(const wan::v1::Quota& quota, const std::string& owner) const {
  if (!quota.has_running_jobs()) return true;
  const auto found = principals_.find(owner);
  const int running = found == principals_.end() ? 0 : found->second.running;
  return running < quota.running_jobs();
}

void UsageAccount::RecallEnded(const std::string& owner, absl::Duration held, absl::Time when) {
  Count(owner, held, when);
}

void UsageAccount::RecallUnended(wan::v1::Job& job, absl::Time heard, absl::Duration shift) {
  const absl::Time start = ToTime(job.start_time());
  Count(job.owner(), absl::Seconds(job.device_seconds()), start + shift);
  if (job.state() != wan::v1::JOB_STATE_RUNNING || heard <= start) return;
  job.set_device_seconds(job.device_seconds() + absl::ToDoubleSeconds(heard - start));
  Count(job.owner(), heard - start, heard + shift);
}

void UsageAccount::Add(const wan::v1::Job& job, std::optional<absl::Duration> estimate) {
  open_[job.name()].owner = job.owner();
  ++principals_[job.owner()].jobs;
  Estimate(job.name(), estimate.value_or(absl::Seconds(job.reserved_device_seconds())));
}

void UsageAccount::Estimate(const std::string& job, std::optional<absl::Duration> estimate) {
  const auto found = open_.find(job);
  if (found == open_.end()) return;
  OpenJob& open = found->second;
  if (!estimate.has_value() || open.reserved == *estimate) return;
  principals_[open.owner].reserved += *estimate - open.reserved;
  open.reserved = *estimate;
}

void UsageAccount::Begin(const wan::v1::Job& job, absl::Duration estimate, absl::Time now) {
  OpenJob& open = open_[job.name()];
  open.charged = estimate;
  open.began = now;
  ++principals_[job.owner()].running;
  recent_.Add(job.owner(), estimate, now);
}

void UsageAccount::End(wan::v1::Job& job, absl::Duration held, absl::Time now) {
  OpenJob& open = open_[job.name()];
  if (open.charged.has_value()) {
    recent_.Add(job.owner(), -*open.charged, open.began);
    --principals_[job.owner()].running;
    open.charged.reset();
  }
  job.set_device_seconds(job.device_seconds() + absl::ToDoubleSeconds(held));
  Count(job.owner(), held, now);
  if (principals_.size() >= forget_at_) ForgetIdle(now);
}

void UsageAccount::Remove(const std::string& job) {
  const auto open = open_.extract(job);
  if (open.empty()) return;
  Principal& principal = principals_[open.mapped().owner];
  --principal.jobs;
  principal.reserved -= open.mapped().reserved;
}

wan::v1::Usage UsageAccount::UsageOf(const std::string& owner, absl::Time now) const {
  wan::v1::Usage usage;
  usage.set_principal(owner);
  const auto found = principals_.find(owner);
  if (found == principals_.end()) return usage;
  const Principal& principal = found->second;
  usage.set_queued_jobs(principal.jobs - principal.running);
  usage.set_running_jobs(principal.running);
  usage.set_device_seconds(absl::ToDoubleSeconds(principal.window.Sum(now)));
  usage.set_reserved_device_seconds(absl::ToDoubleSeconds(principal.reserved));
  return usage;
}

void UsageAccount::Count(const std::string& owner, absl::Duration held, absl::Time when) {
  if (held <= absl::ZeroDuration()) return;
  recent_.Add(owner, held, when);
  principals_[owner].window.Add(held, when);
}

void UsageAccount::ForgetIdle(absl::Time now) {
  std::erase_if(principals_, [now](const auto& entry) {
    const Principal& principal = entry.second;
    return principal.jobs == 0 && principal.window.Sum(now) == absl::ZeroDuration();
  });
  forget_at_ = std::max(kFewestToForget, 2 * principals_.size());
}

}  // namespace wan::server
