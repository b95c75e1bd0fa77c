// One ListJobs request, answered in steps: between them its thread works for others.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "server/jobs/job_states.h"
#include "server/retention/retention.h"
#include "server/store/job_store.h"
#include "wan/v1/video_generation.pb.h"

namespace wan::server {

// Not thread-safe, but each step may come from another thread.
class JobListing {
 public:
  // All must outlive the listing.
  struct Parts {
    JobStore& store;
    const JobStates& states;
    const Retention& retention;
  };
  // `query` is QueryOf(request, ...), and `key` seals the page token.
  JobListing(Parts parts, wan::v1::ListJobsRequest request, JobQuery query, std::string key);

  // Looks at up to 1,024 jobs more. Returns whether the answer is complete; no step may follow that
  // or an error.
  absl::StatusOr<bool> Step();

  // The answer; once, when it is complete.
  wan::v1::ListJobsResponse Take() { return std::move(response_); }

 private:
  // Returns the job as the list shows it; nullopt if it is not surely on the disk.
  std::optional<wan::v1::Job> ShownOf(StoredJob stored) const;

  const Parts parts_;
  const wan::v1::ListJobsRequest request_;
  JobQuery query_;       // of the jobs that are missing
  const bool filtered_;  // whether the query leaves jobs out
  const std::string key_;
  wan::v1::ListJobsResponse response_;
  // The end of a full page, where the next one begins if another job follows.
  std::optional<JobPlace> end_;
};

}  // namespace wan::server
