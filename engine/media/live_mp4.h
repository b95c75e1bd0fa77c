// Turns the packets that go to an ordinary MP4 file into a fragmented MP4, for players that show
// the video while it is made. Only the files of this directory include it.
#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/media/libav.h"
#include "engine/media/video_writer.h"

namespace wan {

// The stream is a header (the boxes ftyp and moov), then a fragment (moof and mdat) for each
// kFragmentFrames frames. Only one fragment is in memory. Not thread-safe.
class LiveMp4 {
 public:
  // A small number, so that players get frames soon; a larger one would save at most 16 bytes a
  // frame.
  static constexpr int kFragmentFrames = 8;

  // `encoder` must be open with AV_CODEC_FLAG_GLOBAL_HEADER; only Open reads it. `name` says in
  // errors which video is meant. INTERNAL if FFmpeg fails.
  static absl::StatusOr<std::unique_ptr<LiveMp4>> Open(const AVCodecContext& encoder,
                                                       OnVideoPart on_part, std::string name,
                                                       const LibavLog& log);
  LiveMp4(const LiveMp4&) = delete;
  LiveMp4& operator=(const LiveMp4&) = delete;
  ~LiveMp4();

  // Adds the encoder's next packet, whose times are in the encoder's time base. Add does not change
  // the packet. The first packet sends the header.
  absl::Status Add(const AVPacket& packet, const LibavLog& log);
  // Sends the last fragment.
  absl::Status Finish(const LibavLog& log);

 private:
  LiveMp4(OnVideoPart on_part, std::string name)
      : on_part_(std::move(on_part)), name_(std::move(name)) {}

  absl::Status Begin(const AVCodecContext& encoder, const LibavLog& log);
  // Sends the header if it was not sent yet. Otherwise ends the fragment, and sends it.
  absl::Status Flush(const LibavLog& log);
  // Sends the bytes that the muxer has written.
  void Send();
  absl::Status Error(int code, const LibavLog& log) const;

  const OnVideoPart on_part_;
  const std::string name_;
  AVRational time_base_ = {0, 1};  // the encoder's time base
  AVFormatContext* muxer_ = nullptr;
  AVStream* stream_ = nullptr;  // the muxer owns it
  PacketPtr packet_;
  std::string codec_;    // empty once the header is sent
  std::string written_;  // the bytes that the muxer has written and Send has not sent
  int frames_ = 0;       // number of frames in the unfinished fragment
};

}  // namespace wan
