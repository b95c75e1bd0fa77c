// Changes to jobs that have ended: their labels, their files, and that they are there at all.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "engine/api/clock.h"
#include "server/conversion/names.h"
#include "server/jobs/job_table.h"
#include "server/store/artifact_store.h"
#include "server/store/job_store.h"
#include "server/watch/event_log.h"
#include "wan/v1/generation.pb.h"

namespace wan::server {

// Thread-safe. Every call waits until the disk has its change. Statuses: NOT_FOUND for an unknown
// job; FAILED_PRECONDITION (JOB_NOT_ENDED); UNAVAILABLE (STORAGE_UNAVAILABLE).
class EndedJobs {
 public:
  // All must outlive the object.
  struct Parts {
    JobStore& store;
    EventLog& log;
    const JobTable& table;
    const ArtifactStore& artifacts;
    Clock& clock;
    // Hears of every write that the store refused.
    std::function<void(const absl::Status&)> on_refused;
  };
  explicit EndedJobs(Parts parts) : parts_(std::move(parts)) {}

  // Lets `change` write to the job's row, and stores it unless that returns an error; `labels` says
  // whether it may change labels. Returns the job as it is then.
  absl::StatusOr<wan::v1::Job> Change(const std::string& name, bool labels,
                                      const std::function<absl::Status(wan::v1::Job&)>& change);

  // Removes the job and all that belongs to it.
  absl::Status Delete(const std::string& name);

  // Removes one file and notes that in the job. NOT_FOUND (ARTIFACT_NOT_FOUND), or EXPIRED if it
  // was removed before.
  absl::Status DeleteArtifact(const ArtifactRef& ref);

 private:
  // What the caller gets to know of a change that was written.
  absl::Status Written(const absl::Status& status) const;

  const Parts parts_;
  absl::Mutex mutex_;  // held while a row is read and written back
};

// NOT_FOUND (ARTIFACT_NOT_FOUND).
absl::Status ArtifactNotFound(const wan::v1::Job& job, const ArtifactRef& ref);

}  // namespace wan::server
