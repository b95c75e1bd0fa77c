#include "client/compare/side_by_side.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <span>
#include <system_error>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "engine/media/video_reader.h"
#include "engine/media/video_writer.h"

namespace wan::client {
namespace {

constexpr int kBar = 4;             // pixels between two fields
constexpr uint8_t kBarColour = 32;  // the brightness of the bars, for R, G and B
constexpr double kVisible = 48;     // the root mean square of the amplified difference that
                                    // DifferenceGain aims at
constexpr int kMaxGain = 64;

// Pictures of one size, side by side.
class Canvas {
 public:
  Canvas(const VideoShape& field, int fields)
      : field_(field),
        // H.264 with halved chroma needs even sides.
        width_((field.width * fields + kBar * (fields - 1) + 1) / 2 * 2),
        height_((field.height + 1) / 2 * 2),
        rgb_(static_cast<size_t>(width_) * static_cast<size_t>(height_) * 3, kBarColour) {}

  int width() const { return width_; }
  int height() const { return height_; }
  std::span<const uint8_t> rgb() const { return rgb_; }

  void Put(int field, std::span<const uint8_t> frame) {
    const size_t row = static_cast<size_t>(field_.width) * 3;
    const size_t left = static_cast<size_t>(field) * static_cast<size_t>(field_.width + kBar) * 3;
    for (int y = 0; y < field_.height; ++y) {
      std::copy_n(frame.data() + y * row, row,
                  rgb_.data() + static_cast<size_t>(y) * width_ * 3 + left);
    }
  }

 private:
  const VideoShape field_;
  const int width_;
  const int height_;
  std::vector<uint8_t> rgb_;
};

std::vector<uint8_t> Difference(std::span<const uint8_t> a, std::span<const uint8_t> b, int gain) {
  std::vector<uint8_t> difference(a.size());
  for (size_t i = 0; i < a.size(); ++i) {
    difference[i] = static_cast<uint8_t>(std::min(255, gain * std::abs(a[i] - b[i])));
  }
  return difference;
}

absl::Status WriteFrames(VideoReader& a, VideoReader& b, const VideoComparison& comparison,
                         int gain, const std::string& path, const FrameProgress& progress,
                         const std::stop_token& stop) {
  const VideoShape& shape = comparison.shape;
  Canvas canvas(shape, gain > 0 ? 3 : 2);
  const int fps = std::max(1, static_cast<int>(std::lround(shape.fps)));
  absl::StatusOr<std::unique_ptr<VideoWriter>> writer = OpenVideoWriter(
      OutputKind::kMp4, path,
      {.width = canvas.width(), .height = canvas.height(), .fps = fps, .frames = shape.frames});
  if (!writer.ok()) return writer.status();
  std::vector<uint8_t> left, right;
  for (int frame = 0; frame < shape.frames; ++frame) {
    if (stop.stop_requested()) return absl::CancelledError("the caller stopped");
    for (auto [reader, pixels] : {std::pair(&a, &left), std::pair(&b, &right)}) {
      const absl::StatusOr<bool> read = reader->Read(*pixels);
      if (!read.ok()) return read.status();
      if (!*read) return absl::DataLossError("a video has become shorter while it was read");
    }
    canvas.Put(0, left);
    canvas.Put(1, right);
    if (gain > 0) canvas.Put(2, Difference(left, right, gain));
    if (absl::Status status = (*writer)->Write(canvas.rgb()); !status.ok()) return status;
    if (progress) progress(frame + 1);
  }
  return (*writer)->Finish();
}

}  // namespace

int DifferenceGain(const VideoComparison& comparison) {
  double squares = 0;
  for (const FrameMetrics& frame : comparison.frames) {
    if (!frame.identical) squares += std::pow(10, -frame.psnr / 10);
  }
  if (squares == 0) return 0;
  const double root = 255 * std::sqrt(squares / static_cast<double>(comparison.frames.size()));
  int gain = 1;
  while (gain < kMaxGain && gain * 2 * root <= kVisible * std::sqrt(2)) gain *= 2;
  return gain;
}

absl::Status WriteSideBySide(const std::string& a, const std::string& b,
                             const VideoComparison& comparison, int gain, const std::string& path,
                             const FrameProgress& progress, const std::stop_token& stop) {
  const absl::StatusOr<std::unique_ptr<VideoReader>> reader_a = OpenVideoReader(a);
  if (!reader_a.ok()) return reader_a.status();
  const absl::StatusOr<std::unique_ptr<VideoReader>> reader_b = OpenVideoReader(b);
  if (!reader_b.ok()) return reader_b.status();
  const std::string part = path + ".part";
  std::error_code error;
  const absl::Cleanup remove = [&part] {
    std::error_code ignored;
    std::filesystem::remove(part, ignored);
  };
  if (absl::Status status =
          WriteFrames(**reader_a, **reader_b, comparison, gain, part, progress, stop);
      !status.ok()) {
    return status;
  }
  std::filesystem::rename(part, path, error);
  if (!error) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(path, " cannot be written: ", error.message()));
}

}  // namespace wan::client
