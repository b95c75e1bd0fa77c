// Owning pointers for FFmpeg's objects, and statuses for its errors. For the files of this
// directory only.
#pragma once

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libswscale/swscale.h>
}

#include <memory>
#include <string>

#include "absl/status/status.h"

namespace wan {

struct LibavDeleter {
  void operator()(AVCodecContext* context) const { avcodec_free_context(&context); }
  void operator()(AVFrame* frame) const { av_frame_free(&frame); }
  void operator()(AVPacket* packet) const { av_packet_free(&packet); }
  void operator()(SwsContext* context) const { sws_freeContext(context); }
};

using CodecContextPtr = std::unique_ptr<AVCodecContext, LibavDeleter>;
using FramePtr = std::unique_ptr<AVFrame, LibavDeleter>;
using PacketPtr = std::unique_ptr<AVPacket, LibavDeleter>;
using SwsContextPtr = std::unique_ptr<SwsContext, LibavDeleter>;

// Keeps the errors that FFmpeg's libraries log on this thread while the object lives. Without an
// object they are dropped; they are never printed. Objects must not be nested.
class LibavLog {
 public:
  LibavLog();
  ~LibavLog();
  LibavLog(const LibavLog&) = delete;
  LibavLog& operator=(const LibavLog&) = delete;

  // The first error that was logged, without its newline; empty if none.
  const std::string& first_error() const { return first_error_; }

 private:
  std::string first_error_;
};

// Returns FFmpeg's text for an error code, for example "Invalid data found when processing input".
std::string LibavErrorText(int code);

// Returns a status with the message `what`, the code's text and the log's first error, if any.
// absl::ErrnoToStatus maps system errors (a full disk is RESOURCE_EXHAUSTED); any other is
// INTERNAL.
absl::Status LibavError(int code, const std::string& what, const LibavLog& log);

}  // namespace wan
