// Writes FFV1 in Matroska files, which keep the RGB values of frames exactly, for measurements and
// further processing.
#include "engine/media/libav_video_writer.h"

namespace wan {
namespace {

// In FFV1's 8-bit RGB format a pixel has 32 bits; one byte is not used.
class Bgr0Converter final : public FrameConverter {
 public:
  void Convert(std::span<const uint8_t> rgb24, AVFrame& frame) override {
    const uint8_t* rgb = rgb24.data();
    for (int y = 0; y < frame.height; ++y) {
      uint8_t* out = frame.data[0] + static_cast<ptrdiff_t>(y) * frame.linesize[0];
      for (int x = 0; x < frame.width; ++x, rgb += 3, out += 4) {
        out[0] = rgb[2];
        out[1] = rgb[1];
        out[2] = rgb[0];
        out[3] = 0;
      }
    }
  }
};

}  // namespace

absl::StatusOr<std::unique_ptr<VideoWriter>> OpenMkvWriter(const std::string& path,
                                                           const VideoFormat& format) {
  const LibavVideoKind kind = {
      .container = "matroska",
      .encoder = "ffv1",
      .pixel_format = AV_PIX_FMT_BGR0,
      .color_space = AVCOL_SPC_RGB,
      .color_primaries = AVCOL_PRI_BT709,
      .color_transfer = AVCOL_TRC_IEC61966_2_1,
      .color_range = AVCOL_RANGE_JPEG,
      .seconds_per_keyframe = 0,
      // FFV1's version 3 divides a frame into slices, each with a checksum, which threads encode in
      // parallel.
      .encoder_options = {{"level", "3"}, {"slicecrc", "1"}},
      // Leave out Matroska's random IDs, so that equal frames give equal files.
      .container_options = {{"fflags", "+bitexact"}},
  };
  return OpenLibavVideoWriter(kind, std::make_unique<Bgr0Converter>(), path, format);
}

}  // namespace wan
