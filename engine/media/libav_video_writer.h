// The part that all video files share: open a muxer and an encoder, feed frames, close.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/media/libav.h"
#include "engine/media/video_writer.h"

namespace wan {

// What one kind of file is.
struct LibavVideoKind {
  const char* container;  // libavformat's names
  const char* encoder;
  AVPixelFormat pixel_format;
  AVColorSpace color_space;
  AVColorPrimaries color_primaries;
  AVColorTransferCharacteristic color_transfer;
  AVColorRange color_range;
  double seconds_per_keyframe;  // 0: every frame is one
  std::vector<std::pair<const char*, const char*>> encoder_options;
  std::vector<std::pair<const char*, const char*>> container_options;
};

// Fills a frame of the kind's pixel format from RGB24.
class FrameConverter {
 public:
  virtual ~FrameConverter() = default;
  virtual void Convert(std::span<const uint8_t> rgb24, AVFrame& frame) = 0;
};

// Errors as OpenVideoWriter's; `format` is within its bounds.
absl::StatusOr<std::unique_ptr<VideoWriter>> OpenLibavVideoWriter(
    const LibavVideoKind& kind, std::unique_ptr<FrameConverter> converter, const std::string& path,
    const VideoFormat& format);

}  // namespace wan
