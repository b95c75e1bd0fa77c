// Parses the changes of UpdateJob.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "wan/v1/generation.pb.h"
#include "wan/v1/video_generation.pb.h"

namespace wan::server {

struct JobUpdate {
  std::string job;  // the job's name, "jobs/ID"
  bool priority = false;
  bool deadline = false;
  bool labels = false;
  wan::v1::GenerationRequest values;

  // Whether the update changes fields that nobody can change once the job has ended.
  bool NeedsUnended() const { return priority || deadline; }
  // Writes the values to a job's request.
  void ApplyTo(wan::v1::GenerationRequest& request) const;
};

// Fails with INVALID_ARGUMENT and all violations of job.name, update_mask and the fields that the
// mask names.
absl::StatusOr<JobUpdate> ParseJobUpdate(const wan::v1::UpdateJobRequest& request, absl::Time now);

}  // namespace wan::server
