#include "server/jobs/ended_jobs.h"

#include <optional>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/api/errors.h"
#include "server/conversion/convert.h"
#include "server/conversion/errors.h"

namespace wan::server {

absl::Status ArtifactNotFound(const wan::v1::Job& job, const ArtifactRef& ref) {
  return WithReason(
      absl::NotFoundError(absl::StrCat(job.name(), " (", wan::v1::JobState_Name(job.state()),
                                       ") has no artifact '", ref.file, "'")),
      kReasonArtifactNotFound);
}

absl::Status EndedJobs::Written(const absl::Status& status) const {
  if (ReasonOf(status) != kReasonStorageUnavailable) return status;
  parts_.on_refused(status);
  return StorageUnavailableError(status);
}

absl::StatusOr<wan::v1::Job> EndedJobs::Change(
    const std::string& name, bool labels,
    const std::function<absl::Status(wan::v1::Job&)>& change) {
  parts_.log.Flush().IgnoreError();  // its end must be stored, or else it has not ended
  absl::MutexLock lock(&mutex_);
  absl::StatusOr<StoredJob> stored = parts_.store.Get(name);
  if (!stored.ok()) return stored.status();
  if (!IsFinal(stored->job.state())) return JobNotEndedError(name);
  if (absl::Status status = change(stored->job); !status.ok()) return status;
  const JobChange row{name, stored->job, {}, std::nullopt, labels};
  if (absl::Status status = Written(parts_.store.Apply(std::span(&row, 1))); !status.ok()) {
    return status;
  }
  return std::move(stored->job);
}

absl::Status EndedJobs::Delete(const std::string& name) {
  parts_.log.Flush().IgnoreError();  // its end must be stored, or else it has not ended
  absl::MutexLock lock(&mutex_);
  if (parts_.table.Find(name).has_value()) return JobNotEndedError(name);
  const absl::StatusOr<StoredJob> stored = parts_.store.Get(name);
  if (!stored.ok()) return stored.status();
  // Files first: a job without them can be deleted again, files without a job could not.
  parts_.artifacts.Remove(name);
  return Written(parts_.store.Remove(name));
}

absl::Status EndedJobs::DeleteArtifact(const ArtifactRef& ref) {
  const std::string name = ArtifactName(ref.job, ref.file);
  return Change(ref.job, /*labels=*/false,
                [&](wan::v1::Job& job) -> absl::Status {
                  for (wan::v1::Artifact& artifact : *job.mutable_artifacts()) {
                    if (artifact.name() != name) continue;
                    if (artifact.has_delete_time()) return ExpiredError(name);
                    *artifact.mutable_delete_time() = ToProto(parts_.clock.Now());
                    return parts_.artifacts.RemoveFile(ref.job, ref.file);
                  }
                  return ArtifactNotFound(job, ref);
                })
      .status();
}

}  // namespace wan::server
