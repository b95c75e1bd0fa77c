#include "client/compare/video_comparison.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/media/video_reader.h"

namespace wan::client {
namespace {

// A longer queue of large frames would take gigabytes.
constexpr unsigned kMostThreads = 16;

struct FramePair {
  std::vector<uint8_t> a;
  std::vector<uint8_t> b;
};

absl::StatusOr<std::pair<VideoShape, std::unique_ptr<VideoReader>>> Open(const std::string& path) {
  absl::StatusOr<std::unique_ptr<VideoReader>> reader = OpenVideoReader(path);
  if (!reader.ok()) return reader.status();
  const VideoShape shape{(*reader)->width(), (*reader)->height(), 0, (*reader)->fps()};
  return std::pair(shape, *std::move(reader));
}

// Reads the same frames of two videos.
class PairReader {
 public:
  // The readers must outlive this object.
  PairReader(VideoReader& a, VideoReader& b) : a_(a), b_(b) {}

  // Reads up to `count` pairs; fewer if a video ends.
  absl::StatusOr<std::vector<FramePair>> Read(size_t count) {
    std::vector<FramePair> pairs;
    while (pairs.size() < count) {
      FramePair pair;
      const absl::StatusOr<bool> more_a = a_.Read(pair.a), more_b = b_.Read(pair.b);
      if (!more_a.ok()) return more_a.status();
      if (!more_b.ok()) return more_b.status();
      frames_a_ += *more_a;
      frames_b_ += *more_b;
      if (!*more_a || !*more_b) break;
      pairs.push_back(std::move(pair));
    }
    return pairs;
  }

  // Returns both numbers of frames after the last pair; reads the longer video to its end.
  absl::StatusOr<std::pair<int, int>> Lengths() {
    std::vector<uint8_t> frame;
    for (auto [reader, frames] : {std::pair(&a_, &frames_a_), std::pair(&b_, &frames_b_)}) {
      while (true) {
        const absl::StatusOr<bool> more = reader->Read(frame);
        if (!more.ok()) return more.status();
        if (!*more) break;
        ++*frames;
      }
    }
    return std::pair(frames_a_, frames_b_);
  }

 private:
  VideoReader& a_;
  VideoReader& b_;
  int frames_a_ = 0;
  int frames_b_ = 0;
};

// Measures each pair in a thread of its own.
std::vector<FrameMetrics> MeasureAll(const std::vector<FramePair>& pairs, const VideoShape& shape) {
  std::vector<FrameMetrics> metrics(pairs.size());
  std::vector<std::jthread> threads;
  for (size_t i = 0; i < pairs.size(); ++i) {
    threads.emplace_back(
        [&, i] { metrics[i] = MeasureFrame(pairs[i].a, pairs[i].b, shape.width, shape.height); });
  }
  threads.clear();
  return metrics;
}

}  // namespace

absl::Status CheckComparable(const VideoShape& a, const VideoShape& b) {
  std::string lines;
  const auto differ = [&](const char* what, const std::string& of_a, const std::string& of_b,
                          const std::string& flag) {
    absl::StrAppend(&lines, "\n  ", what, ": is ", of_a, " in A and ", of_b,
                    " in B; must be the same in both, for example B made with ", flag, " ", of_a);
  };
  const auto size = [](const VideoShape& shape) {
    return absl::StrCat(shape.width, "x", shape.height);
  };
  if (a.width > 0 && b.width > 0 && (a.width != b.width || a.height != b.height)) {
    differ("size", size(a), size(b), "--size");
  }
  if (a.frames > 0 && b.frames > 0 && a.frames != b.frames) {
    differ("frames", absl::StrCat(a.frames), absl::StrCat(b.frames), "--frames");
  }
  // Containers round rates such as 24000/1001.
  if (a.fps > 0 && b.fps > 0 && std::abs(a.fps - b.fps) > 1e-4 * a.fps) {
    differ("fps", absl::StrCat(a.fps), absl::StrCat(b.fps), "--fps");
  }
  if (lines.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("the videos cannot be compared frame by frame:", lines));
}

int VideoComparison::identical() const {
  return static_cast<int>(std::count_if(frames.begin(), frames.end(),
                                        [](const FrameMetrics& frame) { return frame.identical; }));
}

MetricSummary Summarize(const VideoComparison& comparison, double FrameMetrics::*metric) {
  MetricSummary summary{0, comparison.frames.front().*metric, 0};
  for (size_t i = 0; i < comparison.frames.size(); ++i) {
    const double value = comparison.frames[i].*metric;
    summary.mean += value;
    if (value < summary.worst) {
      summary.worst = value;
      summary.worst_frame = static_cast<int>(i);
    }
  }
  summary.mean /= static_cast<double>(comparison.frames.size());
  return summary;
}

absl::StatusOr<VideoComparison> CompareVideos(const std::string& a, const std::string& b,
                                              const FrameProgress& progress,
                                              const std::stop_token& stop) {
  auto first = Open(a), second = Open(b);
  if (!first.ok()) return first.status();
  if (!second.ok()) return second.status();
  auto& [shape_a, reader_a] = *first;
  auto& [shape_b, reader_b] = *second;
  if (absl::Status status = CheckComparable(shape_a, shape_b); !status.ok()) return status;
  if (MsSsimScales(shape_a.width, shape_a.height) == 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("size: is ", shape_a.width, "x", shape_a.height,
                     "; both sides must be at least ", kSsimWindow, " pixels, the window of SSIM"));
  }
  VideoComparison comparison{shape_a, {}};
  PairReader pairs(*reader_a, *reader_b);
  const size_t batch = std::clamp(std::thread::hardware_concurrency(), 1u, kMostThreads);
  while (true) {
    if (stop.stop_requested()) return absl::CancelledError("the caller stopped");
    const absl::StatusOr<std::vector<FramePair>> read = pairs.Read(batch);
    if (!read.ok()) return read.status();
    const std::vector<FrameMetrics> metrics = MeasureAll(*read, shape_a);
    comparison.frames.insert(comparison.frames.end(), metrics.begin(), metrics.end());
    if (progress) progress(static_cast<int>(comparison.frames.size()));
    if (read->size() < batch) break;
  }
  const absl::StatusOr<std::pair<int, int>> lengths = pairs.Lengths();
  if (!lengths.ok()) return lengths.status();
  for (const auto& [path, frames] :
       {std::pair(&a, lengths->first), std::pair(&b, lengths->second)}) {
    if (frames == 0) return absl::DataLossError(absl::StrCat(*path, " has no frames"));
  }
  shape_a.frames = lengths->first;
  shape_b.frames = lengths->second;
  if (absl::Status status = CheckComparable(shape_a, shape_b); !status.ok()) return status;
  comparison.shape = shape_a;
  return comparison;
}

}  // namespace wan::client
