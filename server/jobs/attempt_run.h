// Runs one attempt of a job, from its plan to its artifacts.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/jobs/job_states.h"
#include "server/jobs/runner_parts.h"
#include "wan/v1/generation.pb.h"

namespace wan::server {

// Plans the job again, stages its files, generates and publishes them, all inside the span
// Total_Execution. If an earlier attempt left a savepoint, continues from there. Returns the
// published artifacts, or the error of the engine or the disk. The caller must then change the
// job's state. Call RunAttempt on the executor's thread.
absl::StatusOr<std::vector<wan::v1::Artifact>> RunAttempt(const RunnerParts& parts,
                                                          const Attempt& attempt);

// Returns the error as the job's owner may see it, without the paths of folders. If the error
// contained such paths, the listeners get the unchanged error.
absl::Status PublicError(const RunnerParts& parts, const wan::v1::Job& job,
                         const absl::Status& status);

}  // namespace wan::server
