#include "client/compare/frame_strip.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "engine/media/image_encode.h"
#include "engine/media/image_resize.h"
#include "engine/media/video_reader.h"

namespace wan::client {
namespace {

constexpr int kQuality = 75;

absl::StatusOr<std::string> SmallJpeg(RgbImage frame) {
  if (frame.width > kStripWidth) {
    const int64_t height = int64_t{frame.height} * kStripWidth / frame.width;
    absl::StatusOr<RgbImage> small =
        ResizeLanczos(frame, {kStripWidth, static_cast<int>(std::max<int64_t>(1, height))});
    if (!small.ok()) return small.status();
    frame = *std::move(small);
  }
  return EncodeJpeg(frame.pixels, frame.width, frame.height, kQuality);
}

}  // namespace

absl::StatusOr<std::vector<std::string>> FrameStrip(const std::string& path, int frames,
                                                    const std::stop_token& stop) {
  const absl::StatusOr<std::unique_ptr<VideoReader>> reader = OpenVideoReader(path);
  if (!reader.ok()) return reader.status();
  const int chosen = std::min(frames, kStripFrames);
  std::vector<std::string> jpegs;
  RgbImage frame{(*reader)->width(), (*reader)->height(), {}};
  for (int index = 0; static_cast<int>(jpegs.size()) < chosen; ++index) {
    if (stop.stop_requested()) return absl::CancelledError("stopped while frames were read");
    const absl::StatusOr<bool> read = (*reader)->Read(frame.pixels);
    if (!read.ok()) return read.status();
    if (!*read) break;
    const int made = static_cast<int>(jpegs.size());
    const int next = chosen == 1 ? 0 : made * (frames - 1) / (chosen - 1);
    if (index < next) continue;
    absl::StatusOr<std::string> jpeg = SmallJpeg(frame);
    if (!jpeg.ok()) return jpeg.status();
    jpegs.push_back(*std::move(jpeg));
  }
  return jpegs;
}

}  // namespace wan::client
