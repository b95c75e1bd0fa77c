// Pointers that own FFmpeg's objects, and statuses for FFmpeg's errors. Only the files of this
// directory include this header.
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

// Collects the errors that FFmpeg's libraries log on this thread, for as long as the object lives.
// Without a LibavLog object the errors are dropped; they are never printed. A thread may have only
// one object at a time.
class LibavLog {
 public:
  LibavLog();
  ~LibavLog();
  LibavLog(const LibavLog&) = delete;
  LibavLog& operator=(const LibavLog&) = delete;

  // Returns the first error that was logged, without its newline; empty if none was.
  const std::string& first_error() const { return first_error_; }

 private:
  std::string first_error_;
};

// Returns FFmpeg's text for one of its error codes, for example "Invalid data found when processing
// input".
std::string LibavErrorText(int code);

// Returns a status whose message consists of `what`, the text of the code and the first error in
// the log, if there is one. absl::ErrnoToStatus maps errors of the system (a full disk is
// RESOURCE_EXHAUSTED); all others are INTERNAL.
absl::Status LibavError(int code, const std::string& what, const LibavLog& log);

}  // namespace wan
