// Limits what one HTTP/2 connection asks of gRPC, by its frames before gRPC sees them.
//
// gRPC 1.51 holds its own limits only against callers that keep to the rules: it counts streams
// against the limit that the caller has acknowledged, looks at the size of a header block when the
// block ends, and lets a caller begin and reset calls faster than it can forget them. Each of the
// three takes all memory of the process over one connection.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "engine/api/clock.h"
#include "server/calls/http2_frames.h"
#include "server/calls/token_bucket.h"

namespace wan::server {

struct Http2Limits {
  // Streams that are open at a time: what gRPC's SETTINGS announce, which need not be acknowledged
  // here. A stream is open until both sides have ended it, or one has reset it. A caller knows of
  // each end later than the guard does, so an honest one never passes the limit.
  int open_streams = 1'000;
  // Bytes of one block of headers as they are sent, padding included. gRPC's own limit of 8 KiB is
  // that of the decoded block, which is hardly ever smaller, and is answered with an error of the
  // call. This limit closes the connection, so it is higher, to let gRPC's error reach a caller
  // first.
  int header_block_bytes = 16 << 10;
  // CONTINUATION frames of one block. A block of 16 KiB fits the HEADERS frame alone; nghttp2
  // allows as many.
  int continuations = 8;
  // Calls that may be reset before they were answered, at once and over time. Twice as many as can
  // be open, so that a caller may cancel all and do so again. (nghttp2 takes 1,000 and 33 a second,
  // Envoy 500 in a connection's life that were younger than a second.) Server's resets count like
  // the caller's, because a caller can make gRPC reset a call by breaking a rule on its stream.
  TokenBucket::Options resets{.most = 2'000, .per_second = 100};
};

// Why a connection is closed.
enum class Http2Rule { kProtocol, kHeaderBlock, kOpenStreams, kResets, kAddress };

inline constexpr std::array kHttp2Rules = {Http2Rule::kProtocol, Http2Rule::kHeaderBlock,
                                           Http2Rule::kOpenStreams, Http2Rule::kResets,
                                           Http2Rule::kAddress};

// The name in metrics and logs: "protocol", "header_block", "streams", "resets", "address".
std::string_view NameOf(Http2Rule rule);

struct Http2Violation {
  Http2Rule rule = Http2Rule::kProtocol;
  std::string text;  // a sentence for the author of the client
};

// Reads the frames of both directions, in the order of their arrival. It does no I/O and keeps no
// bytes; its memory is bounded by the limits. Use it on one thread.
class Http2Guard {
 public:
  // The clock must outlive the guard.
  Http2Guard(const Http2Limits& limits, Clock& clock);

  // Reads what the caller sent next. A violation is final: nothing of these bytes may go on to
  // gRPC, and this must not be called again.
  std::optional<Http2Violation> FromCaller(std::string_view bytes);
  // Reads what gRPC sent next, also after a violation. Returns the caller's violation, if there is
  // one by now; the bytes may go to the caller all the same.
  std::optional<Http2Violation> FromServer(std::string_view bytes);

  // The number of streams whose answer has not ended: calls that gRPC works on.
  int unanswered() const { return unanswered_; }
  // The number of calls that were reset since the last call of this function.
  int TakeResets();

  // The bytes that FromServer has read of a frame whose end it has not read.
  size_t unfinished_to_caller() const { return server_.unfinished(); }

  // Returns the frame (GOAWAY) with the reason for the caller.
  std::string GoAway(const Http2Violation& violation) const;

 private:
  struct Stream {
    bool caller_ended = false;
    bool server_ended = false;
  };

  bool ReadPreface(std::string_view& bytes);
  bool OnCallerFrame(const Http2Frame& frame);
  bool OnHeaders(const Http2Frame& frame);
  bool OnContinuation(const Http2Frame& frame);
  bool GrowBlock(const Http2Frame& frame);
  void OnServerFrame(const Http2Frame& frame);
  void EndOf(uint32_t stream, bool Stream::*side);
  bool OnReset(const Http2Frame& frame, bool by_caller);
  bool CountReset();
  // Notes the violation; returns false.
  bool Break(Http2Rule rule, std::string text);

  const Http2Limits limits_;
  const Clock& clock_;
  Http2FrameReader caller_;
  Http2FrameReader server_;
  size_t preface_bytes_ = 0;
  uint32_t last_stream_ = 0;
  std::unordered_map<uint32_t, Stream> streams_;
  int unanswered_ = 0;
  // The stream whose block of headers is open; 0: none.
  uint32_t block_stream_ = 0;
  uint32_t block_bytes_ = 0;
  int block_continuations_ = 0;
  TokenBucket resets_;
  int new_resets_ = 0;
  std::optional<Http2Violation> violation_;
};

}  // namespace wan::server
