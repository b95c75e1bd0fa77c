#include "server/jobs/job_runner.h"

#include <optional>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "engine/api/errors.h"
#include "engine/api/storage_error.h"
#include "server/conversion/errors.h"
#include "server/conversion/public_text.h"
#include "server/jobs/attempt_run.h"

namespace wan::server {
namespace {

// The engine and the server must use the same reason for storage errors.
static_assert(kReasonStorage == kReasonStorageUnavailable);

// How often a job may go back to the queue because the disk refused a file but took writes again at
// once.
constexpr int kMostRefusals = 3;
constexpr uint64_t kNearlyFull = uint64_t{1} << 20;

}  // namespace

bool JobRunner::RunNext() {
  if (!parts_.storage.status().ok()) return false;
  const std::optional<Attempt> attempt = parts_.states.BeginNext(parts_.group);
  if (!attempt.has_value()) return false;
  // This group is busy now, so let an idle group load a model for waiting jobs that otherwise only
  // this group could run.
  if (parts_.groups.size() > 1) parts_.groups.WakeAll();
  const std::string& name = attempt->job.name();
  // Wait until the attempt's entry is on the disk, because the engine may crash the process.
  const absl::Status entered = parts_.ledger.Flush();
  if (ReasonOf(entered) == kReasonStorageUnavailable) {
    Postpone(name, entered);
    return false;
  }
  const absl::StatusOr<std::vector<wan::v1::Artifact>> result = RunAttempt(parts_, *attempt);
  parts_.live_videos.End(name, /*complete=*/result.ok());
  const bool lost = IsDeviceLost(result.status());
  if (lost) parts_.groups.Leave(parts_.group, result.status());
  const absl::Status storage =
      result.ok() || lost ? absl::OkStatus() : StorageProblem(*attempt, result.status());
  if (!storage.ok()) {
    Tidy(attempt->job, Postpone(name, storage));
    return true;
  }
  least_free_bytes_ = 0;
  const absl::Status told = PublicError(parts_, attempt->job, result.status());
  const wan::v1::JobState state = result.ok() ? parts_.states.End(name, result)
                                  : lost ? parts_.states.EndLost(name, std::string(told.message()))
                                         : parts_.states.End(name, told);
  Tidy(attempt->job, state);
  if (result.ok() && state != wan::v1::JOB_STATE_COMPLETED) {
    // If this fails, the next start tries again.
    parts_.artifacts.RemoveAttempt(name, attempt->job.attempt()).IgnoreError();
  }
  if (lost) parts_.on_device_lost(parts_.group, result.status());
  return true;
}

wan::v1::JobState JobRunner::Postpone(const std::string& job, const absl::Status& problem) {
  parts_.storage.Report(problem);
  // Job owners must not see the folders' paths or the database's host; administrators see them in
  // the status of the storage.
  const absl::string_view why = problem.message();
  if (!absl::StrContains(why, parts_.data_dir)) {
    return parts_.states.Postpone(job, "the job database takes no writes");
  }
  return parts_.states.Postpone(
      job, absl::StrCat("the data folder takes no writes: ",
                        WithoutFolders({why.data(), why.size()}, std::span(&parts_.data_dir, 1))));
}

void JobRunner::Tidy(const wan::v1::Job& job, wan::v1::JobState state) {
  parts_.artifacts.Discard(job.name(), job.attempt());
  if (!IsFinal(state)) return;
  parts_.savepoints.Remove(job.name());
  refusals_.erase(job.name());
}

absl::Status JobRunner::StorageProblem(const Attempt& attempt, const absl::Status& result) {
  // Check before the attempt's files are discarded, because these files may have filled the disk.
  absl::Status problem = parts_.artifacts.CheckWritable(0);
  if (problem.ok() && !IsStorageError(result)) return problem;
  if (problem.ok()) {
    // The disk refused a file, but a probe shows that it takes writes now. If this happens again
    // and again, for example because the job's files exceed a disk quota, let the job fail so that
    // its owner sees the cause.
    if (++refusals_[attempt.job.name()] > kMostRefusals) return problem;
    problem = result;
  }
  const uint64_t free = parts_.artifacts.FreeBytes().value_or(0);
  if (free > kNearlyFull) return problem;  // the disk has space, so a full disk is not the cause
  least_free_bytes_ =
      free + parts_.artifacts.StagedBytes(attempt.job.name(), attempt.job.attempt());
  return problem;
}

}  // namespace wan::server
