// Limits what one HTTP/2 connection asks of gRPC, by checking its frames before gRPC sees them.
//
// The limits of gRPC 1.51 do not stop a hostile caller: gRPC applies its stream limit only after
// the caller has acknowledged it, checks the size of a header block only when the block ends, and
// lets a caller begin and reset calls faster than it can clean them up. Each of these weaknesses
// lets one connection exhaust the memory of the process.
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
  // Maximum number of open streams of the connection, which gRPC's SETTINGS announce; the limit
  // holds even before the caller acknowledges them. A stream is open until both sides have ended it
  // or one has reset it. The guard sees the end of each stream before the caller does, so an honest
  // caller never exceeds the limit.
  int open_streams = 1'000;
  // Maximum number of bytes of one encoded header block, padding included. The relay closes a
  // connection that exceeds this limit. The limit is higher than gRPC's of 8 KiB for the decoded
  // block, so that an honest caller gets gRPC's error for the call instead.
  int header_block_bytes = 16 << 10;
  // Maximum number of CONTINUATION frames of one header block; nghttp2 has the same limit. A header
  // block of 16 KiB fits into the HEADERS frame alone.
  int continuations = 8;
  // Maximum number of calls that are reset before they are answered: `most` at once, then
  // `per_second`. `most` is twice open_streams, so that a caller can cancel all its calls twice.
  // (nghttp2 allows 1,000 and 33 a second; Envoy allows 500 early resets per connection.) Resets by
  // the server count as well, because a caller can provoke them by breaking a rule on a stream.
  TokenBucket::Options resets{.most = 2'000, .per_second = 100};
};

// Why the guard closes a connection.
enum class Http2Rule { kProtocol, kHeaderBlock, kOpenStreams, kResets, kAddress };

inline constexpr std::array kHttp2Rules = {Http2Rule::kProtocol, Http2Rule::kHeaderBlock,
                                           Http2Rule::kOpenStreams, Http2Rule::kResets,
                                           Http2Rule::kAddress};

// Returns the rule's name in metrics and logs: "protocol", "header_block", "streams", "resets",
// "address".
std::string_view NameOf(Http2Rule rule);

struct Http2Violation {
  Http2Rule rule = Http2Rule::kProtocol;
  std::string text;  // a sentence for the author of the caller's program
};

// Checks the frames of both directions of a connection, in the order in which they arrive. Does no
// I/O and stores no payload; its memory is bounded by the limits. Use a guard on one thread only.
class Http2Guard {
 public:
  // The clock must outlive the guard.
  Http2Guard(const Http2Limits& limits, Clock& clock);

  // Reads the next bytes that the remote client has sent. After a violation do not pass these bytes
  // to gRPC, and do not call FromCaller again.
  std::optional<Http2Violation> FromCaller(std::string_view bytes);
  // Reads the next bytes that gRPC sent; may be called even after a violation. Returns a violation
  // if the remote client has committed one; pass the bytes to that client in any case.
  std::optional<Http2Violation> FromServer(std::string_view bytes);

  // Number of streams whose answer has not ended.
  int unanswered() const { return unanswered_; }
  // Returns the number of resets since the last call of this function.
  int TakeResets();

  // Number of bytes of an incomplete frame that FromServer has read.
  size_t unfinished_to_caller() const { return server_.unfinished(); }

  // Returns a GOAWAY frame whose text tells the caller the violation.
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
  // Records the violation; always returns false.
  bool Break(Http2Rule rule, std::string text);

  const Http2Limits limits_;
  const Clock& clock_;
  Http2FrameReader caller_;
  Http2FrameReader server_;
  size_t preface_bytes_ = 0;
  uint32_t last_stream_ = 0;
  std::unordered_map<uint32_t, Stream> streams_;
  int unanswered_ = 0;
  // The stream whose header block has begun and not ended; 0: none.
  uint32_t block_stream_ = 0;
  uint32_t block_bytes_ = 0;
  int block_continuations_ = 0;
  TokenBucket resets_;
  int new_resets_ = 0;
  std::optional<Http2Violation> violation_;
};

}  // namespace wan::server
