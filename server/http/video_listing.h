// Lists videos in steps, so that the thread can serve other calls between them.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/http/video_query.h"
#include "server/jobs/job_service.h"
#include "wan/v1/video_generation.pb.h"

namespace wan::server {

// A page ends with the video whose JSON makes the page larger than this, as in ListJobs.
inline constexpr size_t kMaxVideoPageBytes = kMaxPageBytes;

// Not thread-safe, but each step may run on another thread.
class VideoListing {
 public:
  // Lists the videos of `owner`, or of all owners. `query` is the query of the request's URL.
  // `jobs` must outlive the listing.
  VideoListing(const JobService& jobs, std::optional<std::string> owner, std::string query)
      : jobs_(jobs), owner_(std::move(owner)), query_(std::move(query)) {}

  // Looks at up to 1,024 more jobs. Returns whether the answer is complete, or the error to answer.
  // Do not call Step again when the answer is complete or after an error.
  absl::StatusOr<bool> Step();

  // Returns the answer in JSON. Call Take once, when Step has returned true.
  std::string Take();

 private:
  absl::Status Begin();
  // Adds the jobs of a finished JobListing. Returns whether the page is complete.
  bool Add(const wan::v1::ListJobsResponse& jobs);

  const JobService& jobs_;
  const std::optional<std::string> owner_;
  const std::string query_;
  VideoPage page_;
  wan::v1::ListJobsRequest request_;
  std::unique_ptr<JobListing> listing_;  // null: the listing has not begun
  // Whether the list has passed the job `after`, whose create_time is `after_time_`; true if the
  // request names no `after`.
  bool behind_ = false;
  absl::Time after_time_;
  std::string data_;  // JSON of the videos, separated by commas
  size_t videos_ = 0;
  std::string first_id_;
  std::string last_id_;
  bool more_ = false;
};

}  // namespace wan::server
