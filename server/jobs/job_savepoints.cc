#include "server/jobs/job_savepoints.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/conversion/errors.h"
#include "server/jobs/receipts.h"
#include "server/jobs/savepoint_origin.h"

namespace wan::server {
namespace {

// How long the end of an attempt waits for the upload of the last savepoint.
constexpr absl::Duration kLastUpload = absl::Seconds(5);

bool IsUnusable(const absl::Status& status) {
  return absl::IsNotFound(status) || absl::IsDataLoss(status) || absl::IsFailedPrecondition(status);
}

}  // namespace

JobSavepoints::JobSavepoints(Parts parts)
    : parts_(std::move(parts)), last_nanos_(parts_.clock.MonotonicNanos()) {}

JobSavepoints::~JobSavepoints() {
  if (!writer_.joinable()) return;
  Clock& steady = parts_.clock.Steady();
  const absl::Time end =
      steady.Now() + (parts_.will_run_again() ? kLastUpload : absl::ZeroDuration());
  std::stop_source upload;
  {
    absl::MutexLock lock(&mutex_);
    end_ = true;
    const auto ended = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return !writes_; };
    steady.AwaitUntil(mutex_, absl::Condition(&ended), end);
    cut_ = true;
    upload = upload_;
  }
  upload.request_stop();  // outside the lock, because it runs callbacks
  writer_.join();
}

absl::StatusOr<std::optional<Savepoint>> JobSavepoints::Load() {
  if (parts_.attempt <= 1) return std::nullopt;
  absl::StatusOr<KeptSavepoint> kept = parts_.store.Read(parts_.job);
  absl::Status usable = kept.status();
  if (absl::IsNotFound(usable)) {
    // Only a job that has lost steps can tell that its savepoint is missing.
    if (!parts_.had_steps) return std::nullopt;
    usable = absl::NotFoundError("it is missing");
  } else if (usable.ok()) {
    usable = CheckOrigin(kept->origin, parts_.origin, parts_.files, parts_.digests, parts_.stop);
    if (usable.ok()) return std::move(kept->savepoint);
    if (IsUnusable(usable)) {
      usable = absl::Status(usable.code(), absl::StrCat("it ", usable.message()));
    }
  }
  // Another error says nothing about the savepoint, which may be good.
  if (!IsUnusable(usable)) return usable;
  if (absl::Status refused = Refuse(std::string(usable.message())); !refused.ok()) return refused;
  return std::nullopt;
}

bool JobSavepoints::IsDue(bool last_step) {
  const absl::Duration work = absl::Nanoseconds(parts_.clock.MonotonicNanos() - last_nanos_);
  return work >= (last_step ? std::min(parts_.interval, kWorkWorthKeeping) : parts_.interval);
}

bool JobSavepoints::WantsWhenStopped() { return parts_.will_run_again(); }

void JobSavepoints::Keep(Savepoint savepoint) {
  last_nanos_ = parts_.clock.MonotonicNanos();
  std::stop_source older;
  {
    absl::MutexLock lock(&mutex_);
    waiting_ = std::move(savepoint);
    older = upload_;
    if (!writer_.joinable()) {
      writes_ = true;
      writer_ = std::thread([this] { Loop(); });
    }
  }
  older.request_stop();
}

absl::Status JobSavepoints::Refuse(const std::string& reason) {
  if (parts_.required) return SavepointUnusableError(reason);
  parts_.on_problem(absl::DataLossError(
      absl::StrCat(parts_.job, " begins at its start, not at its savepoint: ", reason)));
  return absl::OkStatus();
}

void JobSavepoints::Loop() {
  for (;;) {
    Savepoint savepoint;
    std::stop_token stop_upload;
    {
      absl::MutexLock lock(&mutex_);
      const auto wake = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        return waiting_.has_value() || end_;
      };
      mutex_.Await(absl::Condition(&wake));
      if (!waiting_.has_value()) {
        writes_ = false;
        return;
      }
      savepoint = *std::move(waiting_);
      waiting_.reset();
      upload_ = std::stop_source();
      if (cut_) upload_.request_stop();
      stop_upload = upload_.get_token();
    }
    Write(savepoint, stop_upload);
  }
}

void JobSavepoints::Write(const Savepoint& savepoint, const std::stop_token& stop_upload) {
  const int64_t begin = parts_.clock.MonotonicNanos();
  AddKnownDigests(parts_.digests, parts_.origin.files);
  const absl::Status written = parts_.store.Write(parts_.job, parts_.origin, savepoint);
  if (!written.ok()) {
    parts_.on_problem(
        absl::Status(written.code(), absl::StrCat("no savepoint of ", parts_.job, " after step ",
                                                  savepoint.steps_done, ": ", written.message())));
    return;
  }
  const auto nanos = static_cast<double>(parts_.clock.MonotonicNanos() - begin);
  parts_.on_written(savepoint.steps_done, nanos * 1e-9);
  if (stop_upload.stop_requested()) return;
  const absl::Status uploaded = parts_.store.Upload(parts_.job, stop_upload);
  if (uploaded.ok() || absl::IsCancelled(uploaded)) return;
  parts_.on_problem(absl::Status(
      uploaded.code(),
      absl::StrCat("the savepoint of ", parts_.job, " after step ", savepoint.steps_done,
                   " is on this machine's disk alone: ", uploaded.message())));
}

}  // namespace wan::server
