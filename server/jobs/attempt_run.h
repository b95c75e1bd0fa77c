// One attempt of a job, from its plan to its artifacts.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/jobs/job_states.h"
#include "server/jobs/runner_parts.h"
#include "wan/v1/generation.pb.h"

namespace wan::server {

// Plans the job anew, stages its files, generates and publishes them, all inside the span
// Total_Execution; a savepoint of an earlier attempt is continued. Returns the published artifacts,
// or why there are none: the engine's error or the disk's. Changes no state of the job. On the
// executor's thread.
absl::StatusOr<std::vector<wan::v1::Artifact>> RunAttempt(const RunnerParts& parts,
                                                          const Attempt& attempt);

// Returns an error as the job's owner may see it, without folders. If that drops anything, the
// listeners get the whole error.
absl::Status PublicError(const RunnerParts& parts, const wan::v1::Job& job,
                         const absl::Status& status);

}  // namespace wan::server
