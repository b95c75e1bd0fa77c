#include "server/jobs/ended_jobs.h"

#include <memory>
#include <optional>
#include <span>

#include "absl/strings/str_cat.h"
#include "engine/api/errors.h"
#include "server/conversion/convert.h"
#include "server/conversion/errors.h"

namespace wan::server {

namespace {

// A key in `turns` with which removals that use the reserved room run one at a time. The key is not
// a valid job name, so it equals no job's key.
constexpr char kRoom[] = "room";

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

// Returns which of a job's files must stay, according to the job's row.
ArtifactStore::Kept KeptOf(const absl::StatusOr<StoredJob>& stored) {
  ArtifactStore::Kept kept;
  kept.any = ReasonOf(stored.status()) != kReasonExpired;
  if (!stored.ok()) return kept;
  kept.any = stored->job.state() == wan::v1::JOB_STATE_COMPLETED;
  kept.attempt = stored->job.attempt();
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

void EndedJobs::Remove(const std::string& job, Note note, const PostTask& post, Done done) {
  // Post the steps that follow the note, because they block on file operations.
  note([this, job, note, post, done = std::move(done)](const absl::Status& noted) {
    post([this, job, note, post, done, noted] {
      if (ReasonOf(noted) == kReasonStorageUnavailable) {
        return RemoveWithRoom(job, note, post, done);
      }
      TidyIfNoted(job, noted);
      done(noted);
    });
  });
}

void EndedJobs::RemoveWithRoom(const std::string& job, const Note& note, const PostTask& post,
                               const Done& done) {
  const auto end = [this, job, done](const absl::Status& noted) {
    TidyIfNoted(job, noted);
    done(Noted(job, noted));
  };
  parts_.turns.Take(kRoom, post, [this, job, done, note, post, end](const Turns::Turn& turn) {
    // Try again first: while this removal waited for its turn, another removal may have freed
    // enough space.
    note([this, job, done, note, post, end, turn](const absl::Status& noted) {
      post([this, job, done, note, post, end, turn, noted] {
        if (ReasonOf(noted) != kReasonStorageUnavailable || !parts_.make_room()) return end(noted);
        note([this, job, done, post, turn](const absl::Status& at_last) {
          post([this, job, done, turn, at_last] {
            TidyIfNoted(job, at_last);
            // Reserve the room again before answering, because the caller's next removal may need
            // that room.
            parts_.keep_room();
            done(Noted(job, at_last));
          });
        });
      });
    });
  });
}

void EndedJobs::Change(const std::string& name, bool labels, RowChange change, const PostTask& post,
                       JobDone done) {
  parts_.turns.Take(
      name, post,
      [this, name, labels, change = std::move(change),
       done = std::move(done)](const Turns::Turn& turn) {
        // A job counts as ended only once the store has its end.
        absl::StatusOr<StoredJob> stored = parts_.store.Get(name);
        if (!stored.ok()) return done(stored.status());
        if (!IsFinal(stored->job.state()) || parts_.states.Look(name).job.has_value()) {
          return done(JobNotEndedError(name));
        }
        if (absl::Status status = change(stored->job); !status.ok()) return done(status);
        const auto row = std::make_shared<const JobChange>(
            JobChange{name, std::move(stored->job), {}, std::nullopt, labels});
        parts_.store.Apply(std::span(row.get(), 1),
                           [this, row, turn, done](const absl::Status& status) {
                             const absl::Status written = Written(status);
                             written.ok() ? done(*row->row) : done(written);
                           });
      });
}

void EndedJobs::Delete(const std::string& name, const PostTask& post, Done done) {
  const Note note = [this, name, post](Done noted) {
    parts_.turns.Take(name, post, [this, name, noted = std::move(noted)](const Turns::Turn& turn) {
      if (parts_.states.Look(name).job.has_value()) return noted(JobNotEndedError(name));
      if (absl::Status known = parts_.store.Get(name).status(); !known.ok()) {
        return noted(Written(known));
      }
      parts_.store.Remove(
          name, [this, turn, noted](const absl::Status& removed) { noted(Written(removed)); });
    });
  };
  Remove(name, note, post, std::move(done));
}

absl::Status EndedJobs::Delete(const std::string& name) {
  return AwaitPosted<absl::Status>(
      [&](const PostTask& post, Done done) { Delete(name, post, std::move(done)); });
}

void EndedJobs::DeleteArtifact(const ArtifactRef& ref, const PostTask& post, Done done) {
  const auto change = [this, ref](wan::v1::Job& job) -> absl::Status {
    const std::string name = ArtifactName(ref.job, ref.file);
    for (wan::v1::Artifact& artifact : *job.mutable_artifacts()) {
      if (artifact.name() != name) continue;
      if (artifact.has_delete_time()) return ExpiredError(name);
      *artifact.mutable_delete_time() = ToProto(parts_.clock.Now());
      return absl::OkStatus();
    }
    return ArtifactNotFound(job, ref);
  };
  Remove(ref.job, NoteOf(ref.job, change, post), post, std::move(done));
}

absl::Status EndedJobs::DeleteArtifacts(const std::string& job) {
  const auto change = [this](wan::v1::Job& row) -> absl::Status {
    for (wan::v1::Artifact& artifact : *row.mutable_artifacts()) {
      if (artifact.has_delete_time()) continue;
      *artifact.mutable_delete_time() = ToProto(parts_.clock.Now());
    }
    return absl::OkStatus();
  };
  return AwaitPosted<absl::Status>([&](const PostTask& post, Done done) {
    Remove(job, NoteOf(job, change, post), post, std::move(done));
  });
}

EndedJobs::Note EndedJobs::NoteOf(const std::string& job, RowChange change, const PostTask& post) {
  return [this, job, change = std::move(change), post](Done noted) {
    Change(job, /*labels=*/false, change, post,
           [noted = std::move(noted)](const absl::StatusOr<wan::v1::Job>& changed) {
             noted(changed.status());
           });
  };
}

void EndedJobs::TidyIfNoted(const std::string& job, const absl::Status& noted) {
  if (noted.ok() || ReasonOf(noted) == kReasonExpired) Tidy(job);
}

absl::Status EndedJobs::Noted(const std::string& job, const absl::Status& status) {
  if (ReasonOf(status) == kReasonStorageUnavailable) {
    // The database may have the note of the removal despite the error. Keep the files until the
    // disk confirms the note, because a power cut could still undo the note.
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
    if (removed.ok() || !left_.insert(job).second) return;  // report each job once
  }
  parts_.on_problem(removed);
}

absl::StatusOr<std::pair<wan::v1::Artifact, ArtifactReader>> EndedJobs::Open(
    const wan::v1::Job& job, const ArtifactRef& ref, uint64_t offset) const {
  const wan::v1::Artifact* const artifact = Find(job, ref);
  if (artifact == nullptr) return ArtifactNotFound(job, ref);
  if (artifact->has_delete_time()) return ExpiredError(artifact->name());
  absl::StatusOr<ArtifactReader> reader =
      parts_.artifacts.OpenForReading(artifact->name(), job.attempt(), offset);
  if (reader.ok()) return std::make_pair(*artifact, *std::move(reader));
  if (ReasonOf(reader.status()) != kReasonArtifactNotFound) return reader.status();
  // The artifact may have been removed after the caller read `job`.
  const absl::StatusOr<StoredJob> now = parts_.store.Get(ref.job);
  if (!now.ok()) return now.status();
  const wan::v1::Artifact* const after = Find(now->job, ref);
  return after != nullptr && after->has_delete_time() ? ExpiredError(after->name())
                                                      : reader.status();
}

ArtifactStore::Kept EndedJobs::KeptFilesOf(const std::string& job) const {
  const absl::StatusOr<StoredJob> stored = parts_.store.Get(job);
  if (stored.ok() && !IsFinal(stored->job.state())) return {};
  return KeptOf(stored);
}

bool EndedJobs::HasEnded(const std::string& job) const {
  const absl::StatusOr<StoredJob> stored = parts_.store.Get(job);
  return stored.ok() ? IsFinal(stored->job.state()) : ReasonOf(stored.status()) == kReasonExpired;
}

void EndedJobs::RemoveLeftFiles() {
  std::set<std::string> left;
  {
    absl::MutexLock lock(&left_mutex_);
    left = left_;
  }
  // After a failed sync, only a successful CheckWritable proves that the notes are on the disk.
  if (left.empty() || !parts_.store.CheckWritable().ok()) return;
  for (const std::string& job : left) Tidy(job);
}

void EndedJobs::KeepRoom() {
  AwaitPosted<absl::Status>([&](const PostTask& post, const Done& done) {
    parts_.turns.Take(kRoom, post, [this, done](const Turns::Turn& /*turn*/) {
      parts_.keep_room();
      done(absl::OkStatus());
    });
  }).IgnoreError();
}

}  // namespace wan::server
