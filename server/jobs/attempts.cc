#include "server/jobs/attempts.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "engine/api/errors.h"
#include "engine/api/stage.h"
#include "server/conversion/convert.h"
#include "server/conversion/errors.h"

namespace wan::server {

void AttemptTrace::Add(const wan::v1::Event& event) {
  heard_ = std::max(heard_, ToTime(event.time()));
  if (event.has_stage_started()) {
    const std::string& stage = event.stage_started().stage();
    if (stage == NameOf(StageKind::kTotalExecution)) return;
    open_.push_back(stage);
    latest_ = stage;
  } else if (event.has_stage_finished() && event.stage_finished().error().empty()) {
    std::erase(open_, event.stage_finished().stage());
  }
}

const std::string& AttemptTrace::stage() const { return open_.empty() ? latest_ : open_.back(); }

void EnterAttempt(wan::v1::Job& job) {
  wan::v1::LostAttempt& entry = *job.add_lost_attempts();
  entry.set_attempt(job.attempt());
  *entry.mutable_start_time() = job.start_time();
}

bool HasOpenAttempt(const wan::v1::Job& job) {
  if (job.lost_attempts().empty()) return false;
  const wan::v1::LostAttempt& entry = *job.lost_attempts().rbegin();
  return entry.attempt() == job.attempt() && !entry.has_end_time();
}

void ClearAttempt(wan::v1::Job& job) {
  if (HasOpenAttempt(job)) job.mutable_lost_attempts()->RemoveLast();
}

void LoseAttempt(wan::v1::Job& job, const AttemptTrace& trace, int steps_kept) {
  wan::v1::LostAttempt& entry = *job.mutable_lost_attempts()->rbegin();
  *entry.mutable_end_time() = ToProto(std::max(trace.heard(), ToTime(entry.start_time())));
  entry.set_stage(trace.stage());
  entry.set_steps_kept(steps_kept);
}

int LostWithoutProgress(const wan::v1::Job& job) {
  const auto furthest = std::max_element(
      job.lost_attempts().begin(), job.lost_attempts().end(),
      [](const auto& a, const auto& b) { return a.steps_kept() < b.steps_kept(); });
  return static_cast<int>(job.lost_attempts().end() - furthest);
}

absl::Status AttemptsExhaustedError(const wan::v1::Job& job) {
  const int lost = LostWithoutProgress(job);
  std::string attempts;
  for (int i = job.lost_attempts_size() - lost; i < job.lost_attempts_size(); ++i) {
    const wan::v1::LostAttempt& entry = job.lost_attempts(i);
    absl::StrAppend(
        &attempts, attempts.empty() ? "" : "; ", "attempt ", entry.attempt(), " last reported at ",
        absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", ToTime(entry.end_time()), absl::UTCTimeZone()),
        entry.stage().empty() ? " before its first stage" : absl::StrCat(" in ", entry.stage()));
  }
  return WithReason(
      absl::InternalError(absl::StrCat(
          "the job is not run again, because it has lost as many attempts as max_attempts "
          "allows (",
          lost,
          ") without keeping a further step: each took the server's process or its device "
          "with it; ",
          attempts)),
      kReasonAttemptsExhausted);
}

}  // namespace wan::server
