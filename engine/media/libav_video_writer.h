// The part that all video formats share: it opens a muxer and an encoder, passes frames to them,
// and closes them.
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
  const char* container;  // the muxer's name in FFmpeg
  const char* encoder;
  AVPixelFormat pixel_format;
  AVColorSpace color_space;
  AVColorPrimaries color_primaries;
  AVColorTransferCharacteristic color_transfer;
  AVColorRange color_range;
  double seconds_per_keyframe;  // seconds between keyframes; 0: every frame is a keyframe
  std::vector<std::pair<const char*, std::string>> encoder_options;
  std::vector<std::pair<const char*, std::string>> container_options;
  int threads = 0;                // encoding threads; 0: the encoder chooses
  OnVideoPart on_part = nullptr;  // as in VideoFormat; only for H.264
};

// Converts RGB24 to a frame in the encoder's pixel format.
class FrameConverter {
 public:
  virtual ~FrameConverter() = default;
  virtual void Convert(std::span<const uint8_t> rgb24, AVFrame& frame) = 0;
};

// Opens a writer for a file of this kind. `format` must be within the limits of OpenVideoWriter.
// Returns the errors of OpenVideoWriter.
absl::StatusOr<std::unique_ptr<VideoWriter>> OpenLibavVideoWriter(
    const LibavVideoKind& kind, std::unique_ptr<FrameConverter> converter, const std::string& path,
    const VideoFormat& format);

}  // namespace wan
