// Shared by all video formats: opens a muxer and an encoder, feeds them frames, and closes them.
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

// Describes one kind of video file.
struct LibavVideoKind {
  const char* container;  // FFmpeg's name of the muxer
  const char* encoder;
  AVPixelFormat pixel_format;
  AVColorSpace color_space;
  AVColorPrimaries color_primaries;
  AVColorTransferCharacteristic color_transfer;
  AVColorRange color_range;
  double seconds_per_keyframe;  // 0: every frame is a keyframe
  std::vector<std::pair<const char*, std::string>> encoder_options;
  std::vector<std::pair<const char*, std::string>> container_options;
  int threads = 0;  // 0: the encoder chooses
};

// Converts RGB24 into a frame of the encoder's pixel format.
class FrameConverter {
 public:
  virtual ~FrameConverter() = default;
  virtual void Convert(std::span<const uint8_t> rgb24, AVFrame& frame) = 0;
};

// Opens a writer for this kind of file. `format` must be within OpenVideoWriter's limits; errors
// are the same.
absl::StatusOr<std::unique_ptr<VideoWriter>> OpenLibavVideoWriter(
    const LibavVideoKind& kind, std::unique_ptr<FrameConverter> converter, const std::string& path,
    const VideoFormat& format);

}  // namespace wan
