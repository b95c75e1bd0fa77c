#include "engine/media/live_mp4.h"

#include <cstdint>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace wan {
namespace {

constexpr int kBufferBytes = 32 << 10;

// empty_moov: the header has no frames. delay_moov: the muxer writes the header after the first
// packet, because the header's edit list needs the packet's times to show the first frame at time
// 0. skip_trailer: no index of the fragments follows the last one.
constexpr char kFlags[] = "+empty_moov+delay_moov+default_base_moof+frag_custom+skip_trailer";

// Returns the name of H.264 with the profile, the constraints and the level that the encoder's
// header has: they follow the start code and the type of the sequence parameter set.
std::string CodecOf(std::span<const uint8_t> header) {
  constexpr uint8_t kTypeBits = 0x1f;
  constexpr uint8_t kSequenceParameters = 7;
  for (size_t i = 0; i + 6 < header.size(); ++i) {
    const bool starts = header[i] == 0 && header[i + 1] == 0 && header[i + 2] == 1;
    if (!starts || (header[i + 3] & kTypeBits) != kSequenceParameters) continue;
    return absl::StrFormat("avc1.%02x%02x%02x", header[i + 4], header[i + 5], header[i + 6]);
  }
  return "avc1";
}

}  // namespace

absl::StatusOr<std::unique_ptr<LiveMp4>> LiveMp4::Open(const AVCodecContext& encoder,
                                                       OnVideoPart on_part, std::string name,
                                                       const LibavLog& log) {
  std::unique_ptr<LiveMp4> live(new LiveMp4(std::move(on_part), std::move(name)));
  if (absl::Status status = live->Begin(encoder, log); !status.ok()) return status;
  return live;
}

LiveMp4::~LiveMp4() {
  if (muxer_ == nullptr) return;
  if (muxer_->pb != nullptr) av_freep(&muxer_->pb->buffer);
  avio_context_free(&muxer_->pb);
  avformat_free_context(muxer_);
}

absl::Status LiveMp4::Begin(const AVCodecContext& encoder, const LibavLog& log) {
  time_base_ = encoder.time_base;
  packet_.reset(av_packet_alloc());
  int code = avformat_alloc_output_context2(&muxer_, nullptr, "mp4", nullptr);
  if (code < 0 || !packet_) return Error(packet_ ? code : AVERROR(ENOMEM), log);
  stream_ = avformat_new_stream(muxer_, nullptr);
  auto* const buffer = static_cast<uint8_t*>(av_malloc(kBufferBytes));
  if (stream_ == nullptr || buffer == nullptr) return Error(AVERROR(ENOMEM), log);
  // FFmpeg 7 makes the bytes const, so their type is left open.
  const auto write = [](void* self, auto* bytes, int count) {
    static_cast<LiveMp4*>(self)->written_.append(reinterpret_cast<const char*>(bytes),
                                                 static_cast<size_t>(count));
    return count;
  };
  muxer_->pb = avio_alloc_context(buffer, kBufferBytes, 1, this, nullptr, write, nullptr);
  if (muxer_->pb == nullptr) {
    av_free(buffer);
    return Error(AVERROR(ENOMEM), log);
  }
  stream_->time_base = encoder.time_base;
  stream_->avg_frame_rate = encoder.framerate;
  stream_->sample_aspect_ratio = encoder.sample_aspect_ratio;
  code = avcodec_parameters_from_context(stream_->codecpar, &encoder);
  if (code < 0) return Error(code, log);
  AVDictionary* options = nullptr;
  av_dict_set(&options, "movflags", kFlags, 0);
  code = avformat_write_header(muxer_, &options);
  av_dict_free(&options);
  codec_ = CodecOf({encoder.extradata, static_cast<size_t>(encoder.extradata_size)});
  return code < 0 ? Error(code, log) : absl::OkStatus();
}

absl::Status LiveMp4::Add(const AVPacket& packet, const LibavLog& log) {
  int code = av_packet_ref(packet_.get(), &packet);
  if (code < 0) return Error(code, log);
  av_packet_rescale_ts(packet_.get(), time_base_, stream_->time_base);
  packet_->stream_index = stream_->index;
  code = av_write_frame(muxer_, packet_.get());
  av_packet_unref(packet_.get());
  if (code < 0) return Error(code, log);
  if (++frames_ < kFragmentFrames && codec_.empty()) return absl::OkStatus();
  return Flush(log);
}

absl::Status LiveMp4::Flush(const LibavLog& log) {
  if (codec_.empty()) frames_ = 0;  // while codec_ is set, Flush writes only the header
  const int code = av_write_frame(muxer_, nullptr);
  if (code < 0) return Error(code, log);
  avio_flush(muxer_->pb);
  Send();
  return absl::OkStatus();
}

absl::Status LiveMp4::Finish(const LibavLog& log) {
  const int code = av_write_trailer(muxer_);
  if (code < 0) return Error(code, log);
  avio_flush(muxer_->pb);
  Send();
  return absl::OkStatus();
}

void LiveMp4::Send() {
  if (written_.empty()) return;
  on_part_({std::exchange(codec_, {}), std::exchange(written_, {})});
}

absl::Status LiveMp4::Error(int code, const LibavLog& log) const {
  return LibavError(code, absl::StrCat("cannot make fragments of ", name_), log);
}

}  // namespace wan
