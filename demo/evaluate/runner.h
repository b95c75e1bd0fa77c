// Lets a server make the videos of a plan, and looks at each of them.
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
  // What was seen in the video; nothing if the job failed or was cancelled, then `error` says why.
  std::optional<VideoResult> result;
  absl::Status error;
};

class Runner {
 public:
  // All arguments must outlive the runner. At most `concurrency` jobs are with the server at a
  // time; 0: as many as its queue takes. The runner writes a line about each video to `progress`.
  Runner(const client::VideoClient& videos, const RunFolder& folder, client::BackoffClock& clock,
         int concurrency, std::ostream& progress);

  // Submits every video that the folder lacks, as fast as the server's queue takes them, and
  // follows the jobs in that order. Meanwhile, other threads download the videos that are done and
  // look at them. The result has the order of the plan. Returns an error only if it ends the run:
  // the server refuses a request or cannot be reached, or a file cannot be written; CANCELLED if
  // `stop` is requested. Jobs that were submitted go on, and the next run of this folder finds
  // them.
  absl::StatusOr<std::vector<VideoOutcome>> Run(const std::vector<PlannedVideo>& plan,
                                                const std::stop_token& stop);

 private:
  // Called with a job's number in the plan, the job's name, and the event that has ended the job.
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
