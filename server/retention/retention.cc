#include "server/retention/retention.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "engine/api/errors.h"
#include "server/conversion/errors.h"

namespace wan::server {
namespace {

constexpr absl::Duration kInterval = absl::Minutes(1);
// Maximum number of removals of one round, so that the log shows how far a long cleanup has come.
constexpr int64_t kMostOfARound = 1000;
constexpr int kJobsAtOnce = 64;

int64_t Count(const RetentionRound& round) {
  int64_t jobs = 0;
  for (const RetentionRound::Removed& removed : round.removed) jobs += removed.jobs;
  return jobs;
}

bool IsFull(const RetentionRound& round) { return Count(round) >= kMostOfARound; }

int64_t BytesOf(const EndedJob& job, bool files) {
  return job.file_bytes + (files ? 0 : job.entry_bytes);
}

}  // namespace

Retention::Retention(const RetentionPolicy& policy, Parts parts)
    : parts_(std::move(parts)), guard_(parts_.clock), policy_(policy) {}

Retention::~Retention() { Stop(); }

void Retention::Start() {
  thread_ = std::thread([this] { Loop(); });
}

void Retention::Stop() {
  {
    absl::MutexLock lock(&mutex_);
    stop_ = true;
  }
  if (thread_.joinable()) thread_.join();
}

bool Retention::stopping() const {
  absl::MutexLock lock(&mutex_);
  return stop_;
}

RetentionPolicy Retention::policy() const {
  absl::MutexLock lock(&mutex_);
  return policy_;
}

void Retention::SetPolicy(const RetentionPolicy& policy) {
  absl::MutexLock lock(&mutex_);
  policy_ = policy;
  changed_ = true;
}

void Retention::Loop() {
  for (;;) {
    parts_.tidy();
    while (RunRound()) {
    }
    VacuumStore();
    absl::MutexLock lock(&mutex_);
    Clock& steady = parts_.clock.Steady();
    const auto wanted = [this]()
                            ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return stop_ || changed_; };
    steady.AwaitUntil(mutex_, absl::Condition(&wanted), steady.Now() + kInterval);
    if (stop_) return;
    changed_ = false;
  }
}

bool Retention::RunRound() {
  RetentionRound round;
  const RetentionPolicy policy = this->policy();
  const int64_t began = parts_.clock.MonotonicNanos();
  absl::Status status = Apply(policy.artifacts, wan::v1::JOB_STATE_COMPLETED, true, round);
  for (const wan::v1::JobState state :
       {wan::v1::JOB_STATE_COMPLETED, wan::v1::JOB_STATE_FAILED, wan::v1::JOB_STATE_CANCELLED}) {
    if (status.ok()) status = Apply(policy.Of(state), state, false, round);
  }
  // Do not report here that the folder takes no writes, because StorageWatch does.
  if (!status.ok() && ReasonOf(status) != kReasonStorageUnavailable) parts_.on_problem(status);
  if (Count(round) == 0) return false;
  round.seconds = static_cast<double>(parts_.clock.MonotonicNanos() - began) * 1e-9;
  parts_.on_round(round);
  return status.ok() && IsFull(round) && !stopping();
}

absl::Status Retention::Apply(const RetentionRule& rule, wan::v1::JobState state, bool files,
                              RetentionRound& round) {
  if (rule.empty()) return absl::OkStatus();
  if (absl::Status aged = ApplyAge(rule, state, files, round); !aged.ok()) return aged;
  absl::StatusOr<std::map<wan::v1::JobState, EndedTotals>> totals =
      parts_.store.TotalsOfEnded(std::nullopt);
  if (!totals.ok()) return totals.status();
  const EndedTotals& total = (*totals)[state];
  constexpr int64_t kNone = 0;
  int64_t jobs = files ? total.jobs_with_files : total.jobs;
  int64_t bytes = total.file_bytes + (files ? 0 : total.entry_bytes);
  jobs = rule.count.has_value() ? std::max(kNone, jobs - *rule.count) : kNone;
  bytes = rule.bytes.has_value() ? std::max(kNone, bytes - *rule.bytes) : kNone;
  EndedQuery query{.state = state, .with_files = files, .limit = kJobsAtOnce};
  while (jobs > 0 || bytes > 0) {
    const absl::StatusOr<std::vector<EndedJob>> oldest = parts_.store.OldestEnded(query);
    if (!oldest.ok()) return oldest.status();
    if (oldest->empty()) return absl::OkStatus();
    for (const EndedJob& job : *oldest) {
      if ((jobs <= 0 && bytes <= 0) || IsFull(round) || stopping()) return absl::OkStatus();
      const absl::StatusOr<bool> removed = Remove(
          job, state, files, jobs > 0 ? RetentionReason::kCount : RetentionReason::kBytes, round);
      if (!removed.ok()) return removed.status();
      if (!*removed) ++query.skip;
      // Count jobs that were skipped as well, so that no younger job is removed in their place.
      --jobs;
      bytes -= BytesOf(job, files);
    }
  }
  return absl::OkStatus();
}

absl::Status Retention::ApplyAge(const RetentionRule& rule, wan::v1::JobState state, bool files,
                                 RetentionRound& round) {
  if (!rule.age.has_value() || !guard_.AgesHold()) return absl::OkStatus();
  EndedQuery query{.state = state,
                   .with_files = files,
                   .ended_before = parts_.clock.Now() - *rule.age,
                   .limit = kJobsAtOnce};
  for (;;) {
    const absl::StatusOr<std::vector<EndedJob>> oldest = parts_.store.OldestEnded(query);
    if (!oldest.ok()) return oldest.status();
    if (oldest->empty()) return absl::OkStatus();
    for (const EndedJob& job : *oldest) {
      if (IsFull(round) || stopping()) return absl::OkStatus();
      const absl::StatusOr<bool> removed = Remove(job, state, files, RetentionReason::kAge, round);
      if (!removed.ok()) return removed.status();
      if (!*removed) ++query.skip;
    }
  }
}

absl::StatusOr<bool> Retention::Remove(const EndedJob& job, wan::v1::JobState state, bool files,
                                       RetentionReason reason, RetentionRound& round) {
  if (parts_.in_use(job.name)) return false;
  const absl::Status status = files ? parts_.remove_files(job.name) : parts_.remove_job(job.name);
  if (ReasonOf(status) == kReasonStorageUnavailable) return status;
  if (!status.ok()) {
    // Ignore NOT_FOUND: another call has removed the job, or the job's damaged row was moved.
    if (!absl::IsNotFound(status)) parts_.on_problem(status);
    return false;
  }
  const auto same = [&](const RetentionRound::Removed& other) {
    return other.state == state && other.files_only == files && other.reason == reason;
  };
  auto entry = std::find_if(round.removed.begin(), round.removed.end(), same);
  if (entry == round.removed.end()) {
    entry = round.removed.insert(entry, {state, files, reason});
  }
  ++entry->jobs;
  entry->bytes += BytesOf(job, files);
  return true;
}

void Retention::VacuumStore() {
  for (;;) {
    if (stopping()) return;
    const absl::StatusOr<bool> more = parts_.store.Vacuum();
    if (!more.ok() || !*more) return;  // ignore errors, because the next round tries again
  }
}

}  // namespace wan::server
