// Changes jobs that have ended: labels, files, and removal.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "engine/api/clock.h"
#include "server/conversion/names.h"
#include "server/jobs/job_states.h"
#include "server/jobs/turns.h"
#include "server/store/artifact_store.h"
#include "server/store/job_store.h"
#include "wan/v1/generation.pb.h"

namespace wan::server {

// Thread-safe. As in JobService, every change calls `done` once the disk has the change. Removals
// work even on a full disk. Errors: NOT_FOUND for an unknown job; FAILED_PRECONDITION
// (JOB_NOT_ENDED); UNAVAILABLE (STORAGE_UNAVAILABLE).
class EndedJobs {
 public:
  // All members must outlive the object.
  struct Parts {
    JobStore& store;
    const JobStates& states;
    // Lets the changes to one job (key: its name) run one at a time, and also the removals that
    // need the reserved room.
    Turns& turns;
    const ArtifactStore& artifacts;
    Clock& clock;
    // EndedJobs calls on_refused with the error of every write that the store refused.
    std::function<void(const absl::Status&)> on_refused;
    // EndedJobs calls on_problem with the error of every file that could not be removed.
    std::function<void(const absl::Status&)> on_problem;
    // `make_room` is called when the store has refused to record a removal: it frees the reserved
    // room of a full disk and returns whether to try again. `keep_room` is called after the second
    // attempt to record the removal. Only one removal at a time calls `make_room` and `keep_room`,
    // on threads that may wait for the disk.
    std::function<bool()> make_room = [] { return false; };
    std::function<void()> keep_room = [] {};
  };
  explicit EndedJobs(Parts parts) : parts_(std::move(parts)) {}

  using Done = std::function<void(const absl::Status&)>;
  using JobDone = std::function<void(absl::StatusOr<wan::v1::Job>)>;
  using RowChange = std::function<absl::Status(wan::v1::Job&)>;

  // Calls `change` with the job's row, and stores the row unless `change` returns an error.
  // `labels` says whether `change` may change labels. `done` receives the changed job.
  void Change(const std::string& name, bool labels, RowChange change, const PostTask& post,
              JobDone done);

  // Removes the job, its row first and then its files. If the process is killed in between, the
  // next start removes files that have no job; a job whose files are gone is never left.
  void Delete(const std::string& name, const PostTask& post, Done done);
  absl::Status Delete(const std::string& name);

  // Records in the job's row that the file is gone, then removes the file. Fails with NOT_FOUND
  // (ARTIFACT_NOT_FOUND) if the job never had the file, or NOT_FOUND (EXPIRED) if the file was
  // removed before.
  void DeleteArtifact(const ArtifactRef& ref, const PostTask& post, Done done);

  // Removes all files of a job but keeps the job. Blocks until the files are removed. Returns OK if
  // the job has no files.
  absl::Status DeleteArtifacts(const std::string& job);

  // Opens an artifact of a job at a byte offset; `ref` is the parsed name of the artifact.
  absl::StatusOr<std::pair<wan::v1::Artifact, ArtifactReader>> Open(const wan::v1::Job& job,
                                                                    const ArtifactRef& ref,
                                                                    uint64_t offset) const;

  // Returns which files of a job must stay. For a completed job: the files that its row lists. For
  // a job that was removed or did not complete: none. For an unknown job: all, because the database
  // may have been replaced. For a job that has not ended: all, because the job may be writing them.
  ArtifactStore::Kept KeptFilesOf(const std::string& job) const;

  // Whether the store says that the job has ended or was removed; false for an unknown job, which
  // may be another server's.
  bool HasEnded(const std::string& job) const;

  // Tries again to remove the files of jobs for which an earlier attempt failed, because the disk
  // did not confirm the change of the database or did not remove the files. Call RemoveLeftFiles
  // periodically.
  void RemoveLeftFiles();

  // Fills up the room that is kept so that jobs can be removed once the disk is full
  // (Parts::keep_room). The room is taken from the disk space that is free now. Call KeepRoom
  // periodically, on a thread that may block.
  void KeepRoom();

 private:
  // Returns the status to send to the caller after a write; tells on_refused if the store refused
  // the write.
  absl::Status Written(const absl::Status& status) const;
  // Returns `status`, the result of recording a removal in the database. If it is uncertain whether
  // the database has the record, RemoveLeftFiles checks the job later.
  absl::Status Noted(const std::string& job, const absl::Status& status);
  // Removes those files of an ended job that the database no longer lists.
  absl::Status RemoveNoted(const std::string& job) const;
  // A function that records in the store that files, or a job, are removed.
  using Note = std::function<void(Done)>;
  // Calls `note`, which records the removal. If the disk is full, frees the reserved room and calls
  // `note` once more. Then removes the files.
  void Remove(const std::string& job, Note note, const PostTask& post, Done done);
  void RemoveWithRoom(const std::string& job, const Note& note, const PostTask& post,
                      const Done& done);
  // Returns a Note that applies `change` to the row of an ended job.
  Note NoteOf(const std::string& job, RowChange change, const PostTask& post);
  void TidyIfNoted(const std::string& job, const absl::Status& noted);
  // Calls RemoveNoted; if RemoveNoted fails, remembers the job for RemoveLeftFiles.
  void Tidy(const std::string& job);

  const Parts parts_;
  absl::Mutex left_mutex_;
  // Jobs whose files RemoveLeftFiles has to check, because some of them may have to be removed.
  std::set<std::string> left_ ABSL_GUARDED_BY(left_mutex_);
};

}  // namespace wan::server
