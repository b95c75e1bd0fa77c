// Compares two video files frame by frame.
#pragma once

#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/compare/frame_metrics.h"

namespace wan::client {

struct VideoShape {
  int width = 0;  // pixels
  int height = 0;
  int frames = 0;  // 0: not known yet
  double fps = 0;  // 0: the file does not say
};

// FAILED_PRECONDITION, with a line for each of size, number of frames and frame rate that differs.
// What is 0 on a side is not compared.
absl::Status CheckComparable(const VideoShape& a, const VideoShape& b);

struct VideoComparison {
  VideoShape shape;
  // One for each frame.
  std::vector<FrameMetrics> frames;

  // The number of frames whose pixels are equal.
  int identical() const;
};

// One figure over all frames.
struct MetricSummary {
  double mean = 0;
  double worst = 0;
  // The first frame that has the worst value, counted from 0.
  int worst_frame = 0;
};
// `comparison` must have a frame.
MetricSummary Summarize(const VideoComparison& comparison, double FrameMetrics::*metric);

// Receives the number of frames that are done, on the thread that made the call.
using FrameProgress = std::function<void(int frames)>;

// Compares the files' frames in pairs, in a thread for each processor (16 at most); the result does
// not depend on their number. Errors: DATA_LOSS, naming the file, if it is not a video or cannot be
// decoded; FAILED_PRECONDITION as CheckComparable, or if a side is shorter than SSIM's window;
// CANCELLED after a stop.
absl::StatusOr<VideoComparison> CompareVideos(const std::string& a, const std::string& b,
                                              const FrameProgress& progress = nullptr,
                                              const std::stop_token& stop = {});

}  // namespace wan::client
