// Answers one ListJobs request in steps, so that its thread can serve other calls between them.
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

// Not thread-safe, but each step may run on another thread.
class JobListing {
 public:
  // All members must outlive the listing.
  struct Parts {
    JobStore& store;
    const JobStates& states;
    const Retention& retention;
  };
  // `query` is the result of QueryOf(request, ...); `key` seals the page token.
  JobListing(Parts parts, wan::v1::ListJobsRequest request, JobQuery query, std::string key);

  // Looks at up to 1,024 more jobs. Returns whether the answer is complete. Do not call Step again
  // after that or after an error.
  absl::StatusOr<bool> Step();

  // Returns the answer. Call Take once, when Step has returned true.
  wan::v1::ListJobsResponse Take() { return std::move(response_); }

 private:
  // Returns the job as the list shows it; nullopt if its stored state must not be shown yet.
  std::optional<wan::v1::Job> ShownOf(StoredJob stored) const;

  const Parts parts_;
  const wan::v1::ListJobsRequest request_;
  JobQuery query_;       // selects the jobs that have not been read yet
  const bool filtered_;  // whether the request has a filter
  const std::string key_;
  wan::v1::ListJobsResponse response_;
  // The place after the last job of a full page; the next page begins there if another job follows.
  std::optional<JobPlace> end_;
};

}  // namespace wan::server
