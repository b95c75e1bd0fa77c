// Has a plan's videos made by a server, and looks at each.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <optional>
#include <ostream>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/retry.h"
#include "client/video_client.h"
#include "demo/evaluate/run_folder.h"
#include "demo/evaluate/run_plan.h"

namespace wan::demo {

struct VideoOutcome {
  const PlannedVideo* video = nullptr;
  // Nothing if the job failed or was cancelled; `error` tells why.
  std::optional<VideoResult> result;
  absl::Status error;
};

class Runner {
 public:
  // All must outlive it. At most `concurrency` jobs are with the server at a time; 0: as many as
  // its queue takes. Progress, a line a video, goes to `progress`.
  Runner(const client::VideoClient& videos, const RunFolder& folder, client::BackoffClock& clock,
         int concurrency, std::ostream& progress);

  // Submits every video that the folder does not have as fast as the server's queue takes them and
  // follows them in that order. Those that are done are downloaded and looked at on threads of
  // their own, meanwhile. The result is in the plan's order. An error is one that ends the run: the
  // server refused a request, cannot be reached, or a file cannot be written; CANCELLED when `stop`
  // is requested. Jobs that were submitted stay, and the next run of this folder finds them.
  absl::StatusOr<std::vector<VideoOutcome>> Run(const std::vector<PlannedVideo>& plan,
                                                const std::stop_token& stop);

 private:
  // A job's number in the plan, its name, and the event that ended it.
  using OnEnd = std::function<void(size_t, const std::string&, const wan::v1::Event&)>;

  absl::Status SubmitAndFollow(const std::vector<PlannedVideo>& plan, std::deque<size_t> waiting,
                               const std::stop_token& stop, const OnEnd& on_end) const;
  absl::StatusOr<std::string> Submit(const PlannedVideo& video, bool others_wait,
                                     const std::stop_token& stop) const;
  absl::StatusOr<VideoOutcome> Look(const PlannedVideo& video, const std::string& job,
                                    const wan::v1::Event& end, const std::stop_token& stop) const;
  absl::StatusOr<wan::v1::Job> GetJob(const std::string& job, const std::stop_token& stop) const;

  const client::VideoClient& videos_;
  const RunFolder& folder_;
  client::BackoffClock& clock_;
  const size_t concurrency_;
  std::ostream& progress_;
};

}  // namespace wan::demo
