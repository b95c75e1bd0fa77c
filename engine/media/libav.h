// Owning pointers and errors of FFmpeg's libraries. For the files of this directory only.
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

// While one lives, errors that the libraries log on this thread are kept instead of printed;
// outside of any, they are dropped. Not nested.
class LibavLog {
 public:
  LibavLog();
  ~LibavLog();
  LibavLog(const LibavLog&) = delete;
  LibavLog& operator=(const LibavLog&) = delete;

  // The first error logged, without the line's end; empty if there was none.
  const std::string& first_error() const { return first_error_; }

 private:
  std::string first_error_;
};

// "Invalid data found when processing input"
std::string LibavErrorText(int code);

// `what`, the code's text and, where there is one, the log's first error. System errors get the
// status that absl::ErrnoToStatus gives them (a full disk is RESOURCE_EXHAUSTED), others INTERNAL.
absl::Status LibavError(int code, const std::string& what, const LibavLog& log);

}  // namespace wan
