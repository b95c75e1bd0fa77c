#include "engine/media/video_reader.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "engine/media/libav.h"

namespace wan {
namespace {

struct DemuxerDeleter {
  void operator()(AVFormatContext* context) const { avformat_close_input(&context); }
};

struct InputDeleter {
  void operator()(AVIOContext* context) const {
    av_freep(reinterpret_cast<void*>(&context->buffer));
    avio_context_free(&context);
  }
};

// Lets FFmpeg read the bytes of a file. FFmpeg's callbacks get the object as `opaque`.
class BytesInput {
 public:
  explicit BytesInput(FileBytes file) : file_(std::move(file)) {}

  // Returns null if memory has run out.
  AVIOContext* Open() {
    constexpr int kBufferBytes = 64 << 10;
    auto* const buffer = static_cast<unsigned char*>(av_malloc(kBufferBytes));
    if (buffer == nullptr) return nullptr;
    context_.reset(
        avio_alloc_context(buffer, kBufferBytes, /*write_flag=*/0, this, &Read, nullptr, &Seek));
    return context_.get();
  }

  // The first error of FileBytes::read.
  const absl::Status& error() const { return error_; }

 private:
  static int Read(void* opaque, uint8_t* buffer, int size) {
    auto& self = *static_cast<BytesInput*>(opaque);
    const absl::StatusOr<std::string> bytes =
        self.file_.read(self.offset_, static_cast<size_t>(size));
    if (!bytes.ok()) {
      self.error_.Update(bytes.status());
      return AVERROR(EIO);
    }
    if (bytes->empty()) return AVERROR_EOF;
    std::copy(bytes->begin(), bytes->end(), buffer);
    self.offset_ += bytes->size();
    return static_cast<int>(bytes->size());
  }

  static int64_t Seek(void* opaque, int64_t offset, int whence) {
    auto& self = *static_cast<BytesInput*>(opaque);
    const auto size = static_cast<int64_t>(self.file_.size);
    if (whence == AVSEEK_SIZE) return size;
    const int from = whence & ~AVSEEK_FORCE;
    if (from == SEEK_CUR) offset += static_cast<int64_t>(self.offset_);
    if (from == SEEK_END) offset += size;
    if (offset < 0 || offset > size) return AVERROR(EINVAL);
    self.offset_ = static_cast<uint64_t>(offset);
    return offset;
  }

  const FileBytes file_;
  uint64_t offset_ = 0;
  absl::Status error_;
  std::unique_ptr<AVIOContext, InputDeleter> context_;
};

class LibavVideoReader final : public VideoReader {
 public:
  explicit LibavVideoReader(std::string path) : path_(std::move(path)) {}
  explicit LibavVideoReader(FileBytes file) : path_("the video") {
    input_.emplace(std::move(file));
  }

  absl::Status Open();

  int width() const override { return width_; }
  int height() const override { return height_; }
  double fps() const override {
    const AVRational rate = demuxer_->streams[stream_]->avg_frame_rate;
    return rate.num > 0 && rate.den > 0 ? av_q2d(rate) : 0;
  }
  absl::StatusOr<bool> Read(std::vector<uint8_t>& rgb24) override;
  absl::StatusOr<bool> Skip() override {
    const LibavLog log;
    return Decode(log);
  }

 private:
  absl::Status Error(const char* what, int code, const LibavLog& log) const {
    if (input_.has_value() && !input_->error().ok()) return input_->error();
    return absl::DataLossError(LibavError(code, absl::StrCat(what, " ", path_), log).message());
  }
  // Decodes the next frame into `frame_`; returns false after the last frame.
  absl::StatusOr<bool> Decode(const LibavLog& log);
  // Sends the next packet of the video to the decoder; after the last packet, sends the end of the
  // stream.
  absl::Status SendPacket(const LibavLog& log);
  absl::Status OpenScaler(const LibavLog& log);

  const std::string path_;
  std::optional<BytesInput> input_;  // nullopt: FFmpeg opens the path; the demuxer uses it
  std::unique_ptr<AVFormatContext, DemuxerDeleter> demuxer_;
  CodecContextPtr decoder_;
  const FramePtr frame_{av_frame_alloc()};
  const PacketPtr packet_{av_packet_alloc()};
  SwsContextPtr scaler_;
  int format_ = AV_PIX_FMT_NONE;  // size and format of the frames for which the scaler was made
  int stream_ = -1;
  int width_ = 0;
  int height_ = 0;
};

absl::Status LibavVideoReader::Open() {
  const LibavLog log;
  AVFormatContext* demuxer = avformat_alloc_context();
  if (demuxer != nullptr && input_.has_value()) demuxer->pb = input_->Open();
  // The prefix keeps FFmpeg from reading a name with a colon as a protocol.
  const std::string url = input_.has_value() ? std::string() : "file:" + path_;
  int code = avformat_open_input(&demuxer, url.c_str(), nullptr, nullptr);
  if (code < 0) return Error("cannot open", code, log);
  demuxer_.reset(demuxer);
  code = avformat_find_stream_info(demuxer, nullptr);
  if (code < 0) return Error("cannot read", code, log);
  const AVCodec* codec = nullptr;
  stream_ = av_find_best_stream(demuxer, AVMEDIA_TYPE_VIDEO, -1, -1, &codec, 0);
  if (stream_ < 0) return Error("no video in", stream_, log);
  decoder_.reset(avcodec_alloc_context3(codec));
  avcodec_parameters_to_context(decoder_.get(), demuxer->streams[stream_]->codecpar);
  code = avcodec_open2(decoder_.get(), codec, nullptr);
  if (code < 0) return Error("cannot decode", code, log);
  width_ = decoder_->width;
  height_ = decoder_->height;
  return absl::OkStatus();
}

absl::Status LibavVideoReader::SendPacket(const LibavLog& log) {
  int code = 0;
  do {
    av_packet_unref(packet_.get());
    code = av_read_frame(demuxer_.get(), packet_.get());
  } while (code >= 0 && packet_->stream_index != stream_);
  if (code < 0 && code != AVERROR_EOF) return Error("cannot read", code, log);
  code = avcodec_send_packet(decoder_.get(), code == AVERROR_EOF ? nullptr : packet_.get());
  av_packet_unref(packet_.get());
  return code < 0 ? Error("cannot decode", code, log) : absl::OkStatus();
}

absl::Status LibavVideoReader::OpenScaler(const LibavLog& log) {
  format_ = frame_->format;
  scaler_.reset(sws_getContext(width_, height_, static_cast<AVPixelFormat>(format_), width_,
                               height_, AV_PIX_FMT_RGB24, SWS_POINT | SWS_ACCURATE_RND, nullptr,
                               nullptr, nullptr));
  if (scaler_ == nullptr) return Error("cannot convert", AVERROR(EINVAL), log);
  if (frame_->colorspace == AVCOL_SPC_RGB) return absl::OkStatus();
  // Without this call swscale assumes BT.601 for every file.
  const int* const matrix = sws_getCoefficients(frame_->colorspace);
  constexpr int kFullRange = 1;
  constexpr int kUnchanged = 1 << 16;
  sws_setColorspaceDetails(scaler_.get(), matrix, frame_->color_range == AVCOL_RANGE_JPEG, matrix,
                           kFullRange, 0, kUnchanged, kUnchanged);
  return absl::OkStatus();
}

absl::StatusOr<bool> LibavVideoReader::Decode(const LibavLog& log) {
  int code = 0;
  while ((code = avcodec_receive_frame(decoder_.get(), frame_.get())) == AVERROR(EAGAIN)) {
    if (absl::Status status = SendPacket(log); !status.ok()) return status;
  }
  if (code == AVERROR_EOF) return false;
  if (code < 0) return Error("cannot decode", code, log);
  if (frame_->width != width_ || frame_->height != height_) {
    return absl::DataLossError(absl::StrCat("the frames of ", path_, " change their size"));
  }
  return true;
}

absl::StatusOr<bool> LibavVideoReader::Read(std::vector<uint8_t>& rgb24) {
  const LibavLog log;
  absl::StatusOr<bool> decoded = Decode(log);
  if (!decoded.ok() || !*decoded) return decoded;
  if (scaler_ == nullptr || frame_->format != format_) {
    if (absl::Status status = OpenScaler(log); !status.ok()) return status;
  }
  const int stride = width_ * 3;
  rgb24.resize(static_cast<size_t>(stride) * static_cast<size_t>(height_));
  uint8_t* const rows[] = {rgb24.data()};
  sws_scale(scaler_.get(), frame_->data, frame_->linesize, 0, height_, rows, &stride);
  return true;
}

}  // namespace

absl::StatusOr<std::unique_ptr<VideoReader>> OpenVideoReader(const std::string& path) {
  auto reader = std::make_unique<LibavVideoReader>(path);
  if (absl::Status status = reader->Open(); !status.ok()) return status;
  return reader;
}

absl::StatusOr<std::unique_ptr<VideoReader>> OpenVideoReader(FileBytes file) {
  auto reader = std::make_unique<LibavVideoReader>(std::move(file));
  if (absl::Status status = reader->Open(); !status.ok()) return status;
  return reader;
}

absl::StatusOr<VideoClip> ReadVideo(const std::string& path) {
  const absl::StatusOr<std::unique_ptr<VideoReader>> reader = OpenVideoReader(path);
  if (!reader.ok()) return reader.status();
  VideoClip clip;
  clip.width = (*reader)->width();
  clip.height = (*reader)->height();
  std::vector<uint8_t> frame;
  while (true) {
    const absl::StatusOr<bool> read = (*reader)->Read(frame);
    if (!read.ok()) return read.status();
    if (!*read) break;
    clip.rgb.insert(clip.rgb.end(), frame.begin(), frame.end());
    ++clip.frames;
  }
  if (clip.frames == 0) return absl::DataLossError(absl::StrCat(path, " has no frames"));
  return clip;
}

}  // namespace wan
