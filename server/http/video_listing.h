// The list of videos, answered in steps: between them its thread works for others.
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

// Most bytes of the JSON of a page's videos, but for the video that passes them: as of a page of
// ListJobs. An escaped character has up to six bytes.
inline constexpr size_t kMaxVideoPageBytes = kMaxPageBytes;

// Not thread-safe, but each step may come from another thread.
class VideoListing {
 public:
  // Lists the videos of `owner`, or of all owners. `query` is that of the request's URL. The
  // service must outlive the listing.
  VideoListing(const JobService& jobs, std::optional<std::string> owner, std::string query)
      : jobs_(jobs), owner_(std::move(owner)), query_(std::move(query)) {}

  // Looks at up to 1,024 jobs more. Returns whether the answer is complete. No step may follow that
  // or an error, which is the answer then.
  absl::StatusOr<bool> Step();

  // The answer in JSON; once, when it is complete.
  std::string Take();

 private:
  absl::Status Begin();
  // Adds the jobs of a complete listing. Returns whether the page is complete.
  bool Add(const wan::v1::ListJobsResponse& jobs);

  const JobService& jobs_;
  const std::optional<std::string> owner_;
  const std::string query_;
  VideoPage page_;
  wan::v1::ListJobsRequest request_;
  std::unique_ptr<JobListing> listing_;  // null: not begun
  // The place of `after` in the list: jobs of another time come after it, and of those of its own
  // time the ones that follow it.
  bool behind_ = false;
  absl::Time after_time_;
  std::string data_;  // the videos, with a comma between two
  size_t videos_ = 0;
  std::string first_id_;
  std::string last_id_;
  bool more_ = false;
};

}  // namespace wan::server
