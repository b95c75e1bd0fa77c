#include "demo/evaluate/video_reader.h"

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libswscale/swscale.h>
}

#include <array>
#include <memory>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace wan::demo {
namespace {

struct Deleter {
  void operator()(AVFormatContext* context) const { avformat_close_input(&context); }
  void operator()(AVCodecContext* context) const { avcodec_free_context(&context); }
  void operator()(AVFrame* frame) const { av_frame_free(&frame); }
  void operator()(AVPacket* packet) const { av_packet_free(&packet); }
  void operator()(SwsContext* context) const { sws_freeContext(context); }
};

// Reads one file. The first error is kept, and ends the reading.
class Reader {
 public:
  explicit Reader(const std::string& path) : path_(path) {}

  absl::StatusOr<Clip> Read() {
    if (absl::Status status = Open(); !status.ok()) return status;
    const std::unique_ptr<AVPacket, Deleter> packet(av_packet_alloc());
    for (int code; (code = av_read_frame(demuxer_.get(), packet.get())) != AVERROR_EOF;) {
      if (code < 0) return Error("cannot read", code);
      if (packet->stream_index == stream_) {
        if (absl::Status status = Decode(packet.get()); !status.ok()) return status;
      }
      av_packet_unref(packet.get());
    }
    if (absl::Status status = Decode(nullptr); !status.ok()) return status;
    if (clip_.frames == 0) return absl::DataLossError(absl::StrCat(path_, " has no frames"));
    return std::move(clip_);
  }

 private:
  absl::Status Error(const char* what, int code) const {
    std::array<char, AV_ERROR_MAX_STRING_SIZE> text{};
    av_strerror(code, text.data(), text.size());
    return absl::DataLossError(absl::StrCat(what, " ", path_, ": ", text.data()));
  }

  absl::Status Open() {
    AVFormatContext* demuxer = nullptr;
    // The prefix prevents FFmpeg from taking a name with a colon for a protocol.
    int code = avformat_open_input(&demuxer, ("file:" + path_).c_str(), nullptr, nullptr);
    if (code < 0) return Error("cannot open", code);
    demuxer_.reset(demuxer);
    code = avformat_find_stream_info(demuxer, nullptr);
    if (code < 0) return Error("cannot read", code);
    const AVCodec* codec = nullptr;
    stream_ = av_find_best_stream(demuxer, AVMEDIA_TYPE_VIDEO, -1, -1, &codec, 0);
    if (stream_ < 0) return Error("no video in", stream_);
    decoder_.reset(avcodec_alloc_context3(codec));
    avcodec_parameters_to_context(decoder_.get(), demuxer->streams[stream_]->codecpar);
    code = avcodec_open2(decoder_.get(), codec, nullptr);
    return code < 0 ? Error("cannot decode", code) : absl::OkStatus();
  }

  // Decodes the frames that a packet completes; if `packet` is null, those that are left.
  absl::Status Decode(const AVPacket* packet) {
    int code = avcodec_send_packet(decoder_.get(), packet);
    if (code < 0) return Error("cannot decode", code);
    while ((code = avcodec_receive_frame(decoder_.get(), frame_.get())) >= 0) {
      if (absl::Status status = Append(); !status.ok()) return status;
    }
    return code == AVERROR(EAGAIN) || code == AVERROR_EOF ? absl::OkStatus()
                                                          : Error("cannot decode", code);
  }

  absl::Status Append() {
    if (clip_.frames == 0) {
      clip_.width = frame_->width;
      clip_.height = frame_->height;
    } else if (frame_->width != clip_.width || frame_->height != clip_.height) {
      return absl::DataLossError(absl::StrCat("the frames of ", path_, " change their size"));
    }
    scaler_.reset(sws_getCachedContext(scaler_.release(), clip_.width, clip_.height,
                                       static_cast<AVPixelFormat>(frame_->format), clip_.width,
                                       clip_.height, AV_PIX_FMT_RGB24, SWS_POINT | SWS_ACCURATE_RND,
                                       nullptr, nullptr, nullptr));
    if (scaler_ == nullptr) return Error("cannot convert", AVERROR(EINVAL));
    const size_t offset = clip_.rgb.size();
    const int stride = clip_.width * 3;
    clip_.rgb.resize(offset + size_t(stride) * clip_.height);
    uint8_t* const rows[] = {clip_.rgb.data() + offset};
    sws_scale(scaler_.get(), frame_->data, frame_->linesize, 0, clip_.height, rows, &stride);
    ++clip_.frames;
    return absl::OkStatus();
  }

  const std::string path_;
  std::unique_ptr<AVFormatContext, Deleter> demuxer_;
  std::unique_ptr<AVCodecContext, Deleter> decoder_;
  const std::unique_ptr<AVFrame, Deleter> frame_{av_frame_alloc()};
  std::unique_ptr<SwsContext, Deleter> scaler_;
  int stream_ = -1;
  Clip clip_;
};

}  // namespace

absl::StatusOr<Clip> ReadVideo(const std::string& path) { return Reader(path).Read(); }

}  // namespace wan::demo
