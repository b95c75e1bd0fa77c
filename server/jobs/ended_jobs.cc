#include "server/jobs/ended_jobs.h"

#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/api/errors.h"
#include "server/conversion/convert.h"
#include "server/conversion/errors.h"

namespace wan::server {

namespace {

// NOT_FOUND (ARTIFACT_NOT_FOUND).
absl::Status ArtifactNotFound(const wan::v1::Job& job, const ArtifactRef& ref) {
  return WithReason(
      absl::NotFoundError(absl::StrCat(job.name(), " (", wan::v1::JobState_Name(job.state()),
                                       ") has no artifact '", ref.file, "'")),
      kReasonArtifactNotFound);
}

const wan::v1::Artifact* Find(const wan::v1::Job& job, const ArtifactRef& ref) {
  const std::string name = ArtifactName(ref.job, ref.file);
  for (const wan::v1::Artifact& artifact : job.artifacts()) {
    if (artifact.name() == name) return &artifact;
  }
  return nullptr;
}

// What of a job's files stays, by its row.
ArtifactStore::Kept KeptOf(const absl::StatusOr<StoredJob>& stored) {
  ArtifactStore::Kept kept;
  kept.any = ReasonOf(stored.status()) != kReasonExpired;
  if (!stored.ok()) return kept;
  kept.any = stored->job.state() == wan::v1::JOB_STATE_COMPLETED;
  for (const wan::v1::Artifact& artifact : stored->job.artifacts()) {
    if (!artifact.has_delete_time()) continue;
    kept.but.push_back(artifact.name().substr(artifact.name().rfind('/') + 1));
  }
  return kept;
}

}  // namespace

absl::Status EndedJobs::Written(const absl::Status& status) const {
  if (ReasonOf(status) != kReasonStorageUnavailable) return status;
  parts_.on_refused(status);
  return ChangeNotStoredError(status);
}

absl::Status EndedJobs::Remove(const std::string& job, const std::function<absl::Status()>& note) {
  absl::Status noted = note();
  const auto tidy = [&] {
    if (noted.ok() || ReasonOf(noted) == kReasonExpired) Tidy(job);
  };
  if (ReasonOf(noted) != kReasonStorageUnavailable) {
    tidy();
    return noted;
  }
  absl::MutexLock lock(&room_mutex_);
  noted = note();  // another removal may have freed enough meanwhile
  if (ReasonOf(noted) == kReasonStorageUnavailable && parts_.make_room()) {
    noted = note();
    tidy();
    parts_.keep_room();
  } else {
    tidy();
  }
  return Noted(job, noted);
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
  return Remove(name, [&] {
    absl::MutexLock lock(&mutex_);
    if (parts_.table.Find(name).has_value()) return JobNotEndedError(name);
    absl::Status removed = parts_.store.Get(name).status();
    if (removed.ok()) removed = parts_.store.Remove(name);
    return Written(removed);
  });
}

absl::Status EndedJobs::DeleteArtifact(const ArtifactRef& ref) {
  const std::string name = ArtifactName(ref.job, ref.file);
  return Remove(ref.job, [&] {
    return Change(ref.job, /*labels=*/false,
                  [&](wan::v1::Job& job) -> absl::Status {
                    for (wan::v1::Artifact& artifact : *job.mutable_artifacts()) {
                      if (artifact.name() != name) continue;
                      if (artifact.has_delete_time()) return ExpiredError(name);
                      *artifact.mutable_delete_time() = ToProto(parts_.clock.Now());
                      return absl::OkStatus();
                    }
                    return ArtifactNotFound(job, ref);
                  })
        .status();
  });
}

absl::Status EndedJobs::DeleteArtifacts(const std::string& job) {
  return Remove(job, [&] {
    return Change(job, /*labels=*/false,
                  [&](wan::v1::Job& row) -> absl::Status {
                    for (wan::v1::Artifact& artifact : *row.mutable_artifacts()) {
                      if (artifact.has_delete_time()) continue;
                      *artifact.mutable_delete_time() = ToProto(parts_.clock.Now());
                    }
                    return absl::OkStatus();
                  })
        .status();
  });
}

absl::Status EndedJobs::Noted(const std::string& job, const absl::Status& status) {
  if (ReasonOf(status) == kReasonStorageUnavailable) {
    // The note may stand in the database all the same. The files stay until the disk confirms it:
    // a power cut could still undo the note.
    absl::MutexLock lock(&left_mutex_);
    left_.insert(job);
  }
  return status;
}

absl::Status EndedJobs::RemoveNoted(const std::string& job) const {
  const absl::StatusOr<StoredJob> stored = parts_.store.Get(job);
  if (ReasonOf(stored.status()) == kReasonStorageUnavailable) return stored.status();
  const ArtifactStore::Kept kept = KeptOf(stored);
  if (!kept.any) return parts_.artifacts.Remove(job);
  absl::Status status;
  for (const std::string& file : kept.but) status.Update(parts_.artifacts.RemoveFile(job, file));
  return status;
}

void EndedJobs::Tidy(const std::string& job) {
  const absl::Status removed = RemoveNoted(job);
  {
    absl::MutexLock lock(&left_mutex_);
    if (removed.ok()) left_.erase(job);
    if (removed.ok() || !left_.insert(job).second) return;  // told once
  }
  parts_.on_problem(removed);
}

absl::StatusOr<std::pair<wan::v1::Artifact, ArtifactReader>> EndedJobs::Open(
    const wan::v1::Job& job, const ArtifactRef& ref, uint64_t offset) const {
  const wan::v1::Artifact* const artifact = Find(job, ref);
  if (artifact == nullptr) return ArtifactNotFound(job, ref);
  if (artifact->has_delete_time()) return ExpiredError(artifact->name());
  absl::StatusOr<ArtifactReader> reader = parts_.artifacts.OpenForReading(artifact->name(), offset);
  if (reader.ok()) return std::make_pair(*artifact, *std::move(reader));
  if (ReasonOf(reader.status()) != kReasonArtifactNotFound) return reader.status();
  // It may have been removed since `job` was read.
  const absl::StatusOr<StoredJob> now = parts_.store.Get(ref.job);
  if (!now.ok()) return now.status();
  const wan::v1::Artifact* const after = Find(now->job, ref);
  return after != nullptr && after->has_delete_time() ? ExpiredError(after->name())
                                                      : reader.status();
}

ArtifactStore::Kept EndedJobs::KeptFilesOf(const std::string& job) const {
  return KeptOf(parts_.store.Get(job));
}

void EndedJobs::RemoveLeftFiles() {
  std::set<std::string> left;
  {
    absl::MutexLock lock(&left_mutex_);
    left = left_;
  }
  // After a sync that failed, only this tells that the notes are on the disk.
  if (left.empty() || !parts_.store.CheckWritable().ok()) return;
  for (const std::string& job : left) Tidy(job);
}

void EndedJobs::KeepRoom() {
  absl::MutexLock lock(&room_mutex_);
  parts_.keep_room();
}

}  // namespace wan::server
