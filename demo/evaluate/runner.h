// Has a plan's videos made by a server, and looks at each.
#pragma once

#include <optional>
#include <ostream>
#include <stop_token>
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
  // All must outlive it. Progress, a line a video, goes to `progress`.
  Runner(const client::VideoClient& videos, const RunFolder& folder, client::BackoffClock& clock,
         std::ostream& progress);

  // Submits every video that the folder does not have as fast as the server's queue takes them,
  // follows them in that order, downloads and looks at each as it is done. In the plan's order. An
  // error is one that ends the run: the server refused a request, cannot be reached, or a file
  // cannot be written; CANCELLED when `stop` is requested. Jobs that were submitted stay, and the
  // next run of this folder finds them.
  absl::StatusOr<std::vector<VideoOutcome>> Run(const std::vector<PlannedVideo>& plan,
                                                const std::stop_token& stop);

 private:
  struct Submitted {
    size_t index;
    std::string job;
  };

  absl::StatusOr<std::string> Submit(const PlannedVideo& video, bool others_wait,
                                     const std::stop_token& stop);
  absl::StatusOr<VideoOutcome> Collect(const PlannedVideo& video, const std::string& job,
                                       const std::stop_token& stop);

  const client::VideoClient& videos_;
  const RunFolder& folder_;
  client::BackoffClock& clock_;
  std::ostream& progress_;
};

// Of 8-bit values of equal number, above 0, in dB; 100 for equal ones.
double Psnr(std::span<const uint8_t> a, std::span<const uint8_t> b);

}  // namespace wan::demo
