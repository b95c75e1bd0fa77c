#include "engine/media/libav_video_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "absl/strings/str_cat.h"
#include "engine/media/live_mp4.h"

namespace wan {
namespace {

using NamedOptions = std::vector<std::pair<const char*, std::string>>;

// A dictionary of options for FFmpeg. FFmpeg removes the options that it knows.
class Options {
 public:
  explicit Options(const NamedOptions& options) {
    for (const auto& [name, value] : options) av_dict_set(&options_, name, value.c_str(), 0);
  }
  ~Options() { av_dict_free(&options_); }
  Options(const Options&) = delete;
  Options& operator=(const Options&) = delete;

  AVDictionary** get() { return &options_; }

  // Returns INTERNAL if FFmpeg did not know an option: without the option the file would be
  // different.
  absl::Status AllTaken() const {
    const AVDictionaryEntry* entry = av_dict_get(options_, "", nullptr, AV_DICT_IGNORE_SUFFIX);
    if (entry == nullptr) return absl::OkStatus();
    return absl::InternalError(absl::StrCat("FFmpeg does not know the option ", entry->key));
  }

 private:
  AVDictionary* options_ = nullptr;
};

// Repeatedly asks the system to begin writing a growing file, so that the fsync at its end finds
// little left to do. The file is durable only after that fsync, which also reports disk errors.
class WriteBack {
 public:
  // Opens `path` again with its own descriptor. If the open fails, the object does nothing.
  explicit WriteBack(const std::string& path) : fd_(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}
  WriteBack(const WriteBack&) = delete;
  WriteBack& operator=(const WriteBack&) = delete;
  ~WriteBack() {
    if (fd_ >= 0) close(fd_);
  }

  // Call UpTo when the file has grown to `bytes`. The final fsync writes bytes that change later,
  // such as an MP4's index. UpTo waits for the disk only if the request queue is full.
  void UpTo(int64_t bytes) {
    if (fd_ < 0 || bytes - begun_ < kPieceBytes) return;
    sync_file_range(fd_, begun_, bytes - begun_, SYNC_FILE_RANGE_WRITE);
    begun_ = bytes;
  }

 private:
  // Bytes per request: enough for efficient writes, few enough to leave little for the fsync.
  static constexpr int64_t kPieceBytes = int64_t{4} << 20;

  const int fd_;
  int64_t begun_ = 0;
};

class LibavVideoWriter final : public VideoWriter {
 public:
  LibavVideoWriter(std::unique_ptr<FrameConverter> converter, std::string path,
                   const VideoFormat& format)
      : converter_(std::move(converter)), path_(std::move(path)), format_(format) {}
  ~LibavVideoWriter() override;

  absl::Status Open(const LibavVideoKind& kind);
  absl::Status Write(std::span<const uint8_t> rgb24) override;
  absl::Status Finish() override;

 private:
  absl::Status OpenEncoder(const LibavVideoKind& kind, const LibavLog& log);
  absl::Status OpenFile(const LibavVideoKind& kind, const LibavLog& log);
  // Sends a frame to the encoder (null: there are no more frames), and writes the packets that are
  // ready.
  absl::Status Encode(const AVFrame* frame, const LibavLog& log);
  absl::Status Error(int code, const char* doing, const LibavLog& log) const {
    return LibavError(code, absl::StrCat("cannot ", doing, " ", path_), log);
  }

  const std::unique_ptr<FrameConverter> converter_;
  const std::string path_;
  const VideoFormat format_;
  AVFormatContext* muxer_ = nullptr;
  AVStream* stream_ = nullptr;  // the muxer owns it
  CodecContextPtr encoder_;
  FramePtr frame_;
  PacketPtr packet_;
  std::optional<WriteBack> write_back_;
  std::unique_ptr<LiveMp4> live_;  // null: the job has no live stream
  int64_t frames_ = 0;
};

LibavVideoWriter::~LibavVideoWriter() {
  encoder_.reset();
  if (muxer_ != nullptr) avio_closep(&muxer_->pb);
  avformat_free_context(muxer_);
}

absl::Status LibavVideoWriter::Open(const LibavVideoKind& kind) {
  const LibavLog log;
  // Because of the prefix, FFmpeg does not take a path such as "a:b" for a protocol. The muxer
  // keeps the URL, because it opens the file once more to move the index to the front.
  const std::string url = absl::StrCat("file:", path_);
  const int code = avformat_alloc_output_context2(&muxer_, nullptr, kind.container, url.c_str());
  if (code < 0) return Error(code, "create", log);
  if (absl::Status status = OpenEncoder(kind, log); !status.ok()) return status;
  if (absl::Status status = OpenFile(kind, log); !status.ok()) return status;
  if (!kind.on_part) return absl::OkStatus();
  absl::StatusOr<std::unique_ptr<LiveMp4>> live =
      LiveMp4::Open(*encoder_, kind.on_part, path_, log);
  if (!live.ok()) return live.status();
  live_ = *std::move(live);
  return absl::OkStatus();
}

absl::Status LibavVideoWriter::OpenEncoder(const LibavVideoKind& kind, const LibavLog& log) {
  const AVCodec* encoder = avcodec_find_encoder_by_name(kind.encoder);
  if (encoder == nullptr) return Error(AVERROR_ENCODER_NOT_FOUND, "encode", log);
  encoder_.reset(avcodec_alloc_context3(encoder));
  frame_.reset(av_frame_alloc());
  packet_.reset(av_packet_alloc());
  if (!encoder_ || !frame_ || !packet_) return Error(AVERROR(ENOMEM), "encode", log);

  encoder_->width = frame_->width = format_.width;
  encoder_->height = frame_->height = format_.height;
  encoder_->pix_fmt = kind.pixel_format;
  frame_->format = kind.pixel_format;
  encoder_->colorspace = kind.color_space;
  encoder_->color_primaries = kind.color_primaries;
  encoder_->color_trc = kind.color_transfer;
  encoder_->color_range = kind.color_range;
  encoder_->sample_aspect_ratio = {1, 1};
  encoder_->time_base = {1, format_.fps};
  encoder_->framerate = {format_.fps, 1};
  encoder_->gop_size =
      std::max(1, static_cast<int>(std::lround(kind.seconds_per_keyframe * format_.fps)));
  encoder_->thread_count = kind.threads;
  if ((muxer_->oformat->flags & AVFMT_GLOBALHEADER) != 0) {
    encoder_->flags |= AV_CODEC_FLAG_GLOBAL_HEADER;
  }
  Options options(kind.encoder_options);
  if (const int code = avcodec_open2(encoder_.get(), encoder, options.get()); code < 0) {
    return Error(code, "encode", log);
  }
  if (absl::Status status = options.AllTaken(); !status.ok()) return status;
  const int code = av_frame_get_buffer(frame_.get(), 0);
  return code < 0 ? Error(code, "encode", log) : absl::OkStatus();
}

absl::Status LibavVideoWriter::OpenFile(const LibavVideoKind& kind, const LibavLog& log) {
  stream_ = avformat_new_stream(muxer_, nullptr);
  if (stream_ == nullptr) return Error(AVERROR(ENOMEM), "create", log);
  stream_->time_base = encoder_->time_base;
  stream_->avg_frame_rate = encoder_->framerate;
  stream_->sample_aspect_ratio = encoder_->sample_aspect_ratio;
  int code = avcodec_parameters_from_context(stream_->codecpar, encoder_.get());
  if (code < 0) return Error(code, "create", log);
  code = avio_open(&muxer_->pb, muxer_->url, AVIO_FLAG_WRITE);
  if (code < 0) return Error(code, "create", log);
  write_back_.emplace(path_);
  Options options(kind.container_options);
  code = avformat_write_header(muxer_, options.get());
  if (code < 0) return Error(code, "write", log);
  return options.AllTaken();
}

absl::Status LibavVideoWriter::Encode(const AVFrame* frame, const LibavLog& log) {
  if (const int code = avcodec_send_frame(encoder_.get(), frame); code < 0) {
    return Error(code, "encode", log);
  }
  while (true) {
    const int received = avcodec_receive_packet(encoder_.get(), packet_.get());
    if (received == AVERROR(EAGAIN) || received == AVERROR_EOF) return absl::OkStatus();
    if (received < 0) return Error(received, "encode", log);
    if (live_ != nullptr) {
      if (absl::Status status = live_->Add(*packet_, log); !status.ok()) return status;
    }
    av_packet_rescale_ts(packet_.get(), encoder_->time_base, stream_->time_base);
    packet_->stream_index = stream_->index;
    const int written = av_interleaved_write_frame(muxer_, packet_.get());
    if (written < 0) return Error(written, "write", log);
    write_back_->UpTo(avio_tell(muxer_->pb));
  }
}

absl::Status LibavVideoWriter::Write(std::span<const uint8_t> rgb24) {
  const size_t expected =
      static_cast<size_t>(format_.width) * static_cast<size_t>(format_.height) * 3;
  if (rgb24.size() != expected) {
    return absl::InvalidArgumentError(absl::StrCat("frame ", frames_, " of ", path_, " has ",
                                                   rgb24.size(), " bytes; must have ", expected));
  }
  if (format_.frames > 0 && frames_ == format_.frames) {
    return absl::InvalidArgumentError(
        absl::StrCat(path_, " was opened for ", format_.frames, " frames and has them all"));
  }
  const LibavLog log;
  // Make the frame writable first: the encoder may still be reading the previous content.
  if (const int code = av_frame_make_writable(frame_.get()); code < 0) {
    return Error(code, "encode", log);
  }
  converter_->Convert(rgb24, *frame_);
  frame_->pts = frames_++;
  return Encode(frame_.get(), log);
}

absl::Status LibavVideoWriter::Finish() {
  if (frames_ == 0) {
    return absl::FailedPreconditionError(absl::StrCat("no frame was written to ", path_));
  }
  const LibavLog log;
  if (absl::Status status = Encode(nullptr, log); !status.ok()) return status;
  if (live_ != nullptr) {
    if (absl::Status status = live_->Finish(log); !status.ok()) return status;
  }
  // Writes are buffered, so av_write_trailer may also report failures of earlier writes.
  if (const int code = av_write_trailer(muxer_); code < 0) return Error(code, "finish", log);
  const int code = avio_closep(&muxer_->pb);
  return code < 0 ? Error(code, "close", log) : absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<VideoWriter>> OpenLibavVideoWriter(
    const LibavVideoKind& kind, std::unique_ptr<FrameConverter> converter, const std::string& path,
    const VideoFormat& format) {
  auto writer = std::make_unique<LibavVideoWriter>(std::move(converter), path, format);
  if (absl::Status status = writer->Open(kind); !status.ok()) return status;
  return writer;
}

}  // namespace wan
