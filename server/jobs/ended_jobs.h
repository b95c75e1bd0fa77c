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

// Thread-safe. Every change ends once the disk has it, by a call of `done`, as those of JobService;
// removals work also on a full disk. Statuses: NOT_FOUND for an unknown job; FAILED_PRECONDITION
// (JOB_NOT_ENDED); UNAVAILABLE (STORAGE_UNAVAILABLE).
class EndedJobs {
 public:
  // All must outlive the object.
  struct Parts {
    JobStore& store;
    const JobStates& states;
    // Changes to one job take turns, by its name, and removals that need the room that is kept for
    // them.
    Turns& turns;
    const ArtifactStore& artifacts;
    Clock& clock;
    // Called with every write that the store refused.
    std::function<void(const absl::Status&)> on_refused;
    // Called with files that could not be removed.
    std::function<void(const absl::Status&)> on_problem;
    // Called when the store has refused to record a removal: frees the reserved room on a full
    // disk; returns whether to try again. `keep_room` is called after that attempt. One call at a
    // time, on threads on which a call of the disk may take a moment.
    std::function<bool()> make_room = [] { return false; };
    std::function<void()> keep_room = [] {};
  };
  explicit EndedJobs(Parts parts) : parts_(std::move(parts)) {}

  using Done = std::function<void(const absl::Status&)>;
  using JobDone = std::function<void(absl::StatusOr<wan::v1::Job>)>;
  using RowChange = std::function<absl::Status(wan::v1::Job&)>;

  // Lets `change` write to the job's row, and stores it unless that returns an error; `labels` says
  // whether it may change labels. Ends with the job as it is then.
  void Change(const std::string& name, bool labels, RowChange change, const PostTask& post,
              JobDone done);

  // Removes the job and all that belongs to it. The row goes first: a kill in between leaves files
  // without a job, which the next start removes, and never a job that promises files that are gone.
  void Delete(const std::string& name, const PostTask& post, Done done);
  absl::Status Delete(const std::string& name);

  // Removes one file and notes that in the job, the note first. NOT_FOUND (ARTIFACT_NOT_FOUND), or
  // EXPIRED if it was removed before.
  void DeleteArtifact(const ArtifactRef& ref, const PostTask& post, Done done);

  // Removes all files of a job that stays, and waits for that. OK if it has none any more.
  absl::Status DeleteArtifacts(const std::string& job);

  // Opens an artifact of a job at a byte offset; `ref` is its parsed name.
  absl::StatusOr<std::pair<wan::v1::Artifact, ArtifactReader>> Open(const wan::v1::Job& job,
                                                                    const ArtifactRef& ref,
                                                                    uint64_t offset) const;

  // Returns the files of a job that stay: without those removed from it, and none if the job was
  // removed or did not complete. Files of unknown jobs stay: the database may have been replaced by
  // a new one. So do those of a job that has not ended, which may just be made.
  ArtifactStore::Kept KeptFilesOf(const std::string& job) const;

  // Removes the files that could not be removed when they should, because the disk did not confirm
  // the change in the database, or refused to remove them. Call it now and then.
  void RemoveLeftFiles();

  // Reserves the room for removals (Parts), as far as the disk has it. Call it now and then, on a
  // thread that may wait.
  void KeepRoom();

 private:
  // The answer for a change that was written.
  absl::Status Written(const absl::Status& status) const;
  // Returns `status`, the result of recording in the database that files of the job go. If that is
  // uncertain, RemoveLeftFiles looks at the job again.
  absl::Status Noted(const std::string& job, const absl::Status& status);
  // Removes the files of an ended job of which the database says that they are gone.
  absl::Status RemoveNoted(const std::string& job) const;
  // Records in the store that files or a job go.
  using Note = std::function<void(Done)>;
  // Calls `note`. If the disk refuses that, calls it once more with the room that is kept for this.
  // Then removes what is noted.
  void Remove(const std::string& job, Note note, const PostTask& post, Done done);
  void RemoveWithRoom(const std::string& job, const Note& note, const PostTask& post,
                      const Done& done);
  // Writes what `change` does to the row of an ended job.
  Note NoteOf(const std::string& job, RowChange change, const PostTask& post);
  void TidyIfNoted(const std::string& job, const absl::Status& noted);
  // Calls RemoveNoted, and remembers the job for RemoveLeftFiles if that fails.
  void Tidy(const std::string& job);

  const Parts parts_;
  absl::Mutex left_mutex_;
  // Jobs whose files may have to go.
  std::set<std::string> left_ ABSL_GUARDED_BY(left_mutex_);
};

}  // namespace wan::server
