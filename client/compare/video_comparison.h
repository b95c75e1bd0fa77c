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
  int frames = 0;  // number of frames; 0: not known yet
  double fps = 0;  // frames per second; 0: the file does not say
};

// FAILED_PRECONDITION, with a line for each property (size, number of frames, frame rate) that
// differs. A property that is 0 on one side is not compared.
absl::Status CheckComparable(const VideoShape& a, const VideoShape& b);

struct VideoComparison {
  VideoShape shape;
  // One entry for each frame.
  std::vector<FrameMetrics> frames;

  // The number of frames whose pixels are equal.
  int identical() const;
};

// Mean and worst value of one figure over all frames.
struct MetricSummary {
  double mean = 0;
  double worst = 0;
  // The first frame that has the worst value, counted from 0.
  int worst_frame = 0;
};
// `comparison` must have at least one frame.
MetricSummary Summarize(const VideoComparison& comparison, double FrameMetrics::*metric);

// Called on the calling thread with the number of compared frames.
using FrameProgress = std::function<void(int frames)>;

// Compares the files' frames in pairs, on one thread for each processor (16 at most); the number of
// threads does not change the result. Errors: DATA_LOSS, naming the file, if it is not a video or
// cannot be decoded; FAILED_PRECONDITION as CheckComparable says, or if a side is shorter than
// SSIM's window; CANCELLED after a stop.
absl::StatusOr<VideoComparison> CompareVideos(const std::string& a, const std::string& b,
                                              const FrameProgress& progress = nullptr,
                                              const std::stop_token& stop = {});

}  // namespace wan::client
