// Writes H.264 in MP4 files, which browsers, phones and editors can play.
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/media/libav_video_writer.h"
#include "engine/media/writer_memory.h"

namespace wan {
namespace {

// Converts RGB to BT.709 with limited range; chroma is averaged over 2x2 pixels.
class Yuv420Converter final : public FrameConverter {
 public:
  explicit Yuv420Converter(SwsContextPtr scaler) : scaler_(std::move(scaler)) {}

  void Convert(std::span<const uint8_t> rgb24, AVFrame& frame) override {
    const uint8_t* const planes[] = {rgb24.data()};
    const int strides[] = {frame.width * 3};
    sws_scale(scaler_.get(), planes, strides, 0, frame.height, frame.data, frame.linesize);
  }

 private:
  const SwsContextPtr scaler_;
};

SwsContextPtr MakeScaler(const VideoFormat& format) {
  // Without FULL_CHR_H_INP, the colours of every second pixel would be ignored.
  SwsContextPtr scaler(sws_getContext(format.width, format.height, AV_PIX_FMT_RGB24, format.width,
                                      format.height, AV_PIX_FMT_YUV420P,
                                      SWS_BICUBIC | SWS_ACCURATE_RND | SWS_FULL_CHR_H_INP, nullptr,
                                      nullptr, nullptr));
  if (!scaler) return nullptr;
  const int* bt709 = sws_getCoefficients(SWS_CS_ITU709);
  constexpr int kFullRange = 1;
  constexpr int kLimitedRange = 0;
  constexpr int kUnchanged = 1 << 16;
  const int code = sws_setColorspaceDetails(scaler.get(), bt709, kFullRange, bt709, kLimitedRange,
                                            0, kUnchanged, kUnchanged);
  return code < 0 ? nullptr : std::move(scaler);
}

// The index is written at the front of the file, so that players can start before they have the
// whole file. The content of the index is known only at the end. If the number of frames is given,
// the muxer reserves space for the index. A frame takes 8 bytes for its time, 4 for its size, 4 if
// it is a keyframe, and 12 and 8 if it is a chunk of its own. Otherwise the muxer moves all frames
// at the end to make room.
std::pair<const char*, std::string> IndexOption(const VideoFormat& format) {
  constexpr int64_t kIndexBytes = 2048;
  constexpr int64_t kFrameIndexBytes = 36;
  if (format.frames == 0) return {"movflags", "+faststart"};
  return {"moov_size", absl::StrCat(kIndexBytes + format.frames * kFrameIndexBytes)};
}

}  // namespace

absl::StatusOr<std::unique_ptr<VideoWriter>> OpenMp4Writer(const std::string& path,
                                                           const VideoFormat& format) {
  if (format.width % 2 != 0 || format.height % 2 != 0) {
    return absl::InvalidArgumentError(absl::StrCat(path, " would be ", format.width, "x",
                                                   format.height,
                                                   "; an MP4 with yuv420p needs even sides"));
  }
  SwsContextPtr scaler = MakeScaler(format);
  if (!scaler) {
    return absl::InternalError(absl::StrCat("cannot encode ", path, ": FFmpeg has no conversion ",
                                            "from RGB to yuv420p at ", format.width, "x",
                                            format.height));
  }
  const LibavVideoKind kind = {
      .container = "mp4",
      .encoder = "libx264",
      .pixel_format = AV_PIX_FMT_YUV420P,
      .color_space = AVCOL_SPC_BT709,
      .color_primaries = AVCOL_PRI_BT709,
      .color_transfer = AVCOL_TRC_BT709,
      .color_range = AVCOL_RANGE_MPEG,
      .seconds_per_keyframe = 2,
      // With cpu-independent, x264 takes only those routines that give the same result on every
      // processor. The option also turns off x264's macroblock tree for AVX-512. That code reads
      // uninitialised memory after rows whose number of macroblocks is not a multiple of eight, so
      // that equal frames gave different files.
      .encoder_options = {{"crf", std::to_string(format.h264.crf)},
                          {"preset", format.h264.preset},
                          {"x264-params", "cpu-independent=1"}},
      .container_options = {IndexOption(format)},
      .threads = H264Threads(format.height),
      .on_part = format.on_part,
  };
  return OpenLibavVideoWriter(kind, std::make_unique<Yuv420Converter>(std::move(scaler)), path,
                              format);
}

}  // namespace wan
