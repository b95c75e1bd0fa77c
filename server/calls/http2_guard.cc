#include "server/calls/http2_guard.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace wan::server {
namespace {

constexpr std::string_view kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

// Error codes of RFC 9113.
constexpr uint32_t kNoError = 0x0;
constexpr uint32_t kProtocolError = 0x1;
constexpr uint32_t kEnhanceYourCalm = 0xb;

void AppendNumber(std::string& bytes, uint32_t number, int size) {
  for (int shift = 8 * (size - 1); shift >= 0; shift -= 8) {
    bytes.push_back(static_cast<char>(number >> shift & 0xff));
  }
}

}  // namespace

std::string_view NameOf(Http2Rule rule) {
  switch (rule) {
    case Http2Rule::kProtocol:
      return "protocol";
    case Http2Rule::kHeaderBlock:
      return "header_block";
    case Http2Rule::kOpenStreams:
      return "streams";
    case Http2Rule::kResets:
      return "resets";
    case Http2Rule::kAddress:
      return "address";
  }
  return "protocol";
}

Http2Guard::Http2Guard(const Http2Limits& limits, Clock& clock)
    : limits_(limits), clock_(clock.Steady()), resets_(limits.resets, clock_.Now()) {}

std::optional<Http2Violation> Http2Guard::FromCaller(std::string_view bytes) {
  if (ReadPreface(bytes)) {
    caller_.Read(bytes, [this](const Http2Frame& frame) { return OnCallerFrame(frame); });
  }
  return violation_;
}

std::optional<Http2Violation> Http2Guard::FromServer(std::string_view bytes) {
  server_.Read(bytes, [this](const Http2Frame& frame) {
    OnServerFrame(frame);
    return true;  // do not stop here: the GOAWAY frame must be sent between two frames
  });
  return violation_;
}

int Http2Guard::TakeResets() { return std::exchange(new_resets_, 0); }

std::string Http2Guard::GoAway(const Http2Violation& violation) const {
  std::string frame;
  AppendNumber(frame, static_cast<uint32_t>(8 + violation.text.size()), 3);
  AppendNumber(frame, static_cast<uint32_t>(Http2Type::kGoAway), 1);
  AppendNumber(frame, 0, 1);
  AppendNumber(frame, 0, 4);
  AppendNumber(frame, last_stream_, 4);
  AppendNumber(frame, violation.rule == Http2Rule::kProtocol ? kProtocolError : kEnhanceYourCalm,
               4);
  return frame + violation.text;
}

// Removes the connection preface ("PRI * HTTP/2.0 ...") from `bytes`; returns false if the preface
// is wrong.
bool Http2Guard::ReadPreface(std::string_view& bytes) {
  const size_t compared = std::min(kPreface.size() - preface_bytes_, bytes.size());
  if (bytes.substr(0, compared) != kPreface.substr(preface_bytes_, compared)) {
    return Break(Http2Rule::kProtocol,
                 "the connection does not begin with the preface of HTTP/2; this port speaks gRPC "
                 "without an upgrade from HTTP/1.1");
  }
  preface_bytes_ += compared;
  bytes.remove_prefix(compared);
  return true;
}

bool Http2Guard::OnCallerFrame(const Http2Frame& frame) {
  if (block_stream_ != 0 &&
      (frame.type != Http2Type::kContinuation || frame.stream != block_stream_)) {
    return Break(Http2Rule::kProtocol,
                 absl::StrCat("stream ", block_stream_,
                              ": another frame came before the end of its headers"));
  }
  switch (frame.type) {
    case Http2Type::kHeaders:
      return OnHeaders(frame);
    case Http2Type::kContinuation:
      return OnContinuation(frame);
    case Http2Type::kData:
      if (frame.Has(kHttp2EndStream)) EndOf(frame.stream, &Stream::caller_ended);
      return true;
    case Http2Type::kReset:
      return OnReset(frame, /*by_caller=*/true);
    case Http2Type::kPushPromise:
      return Break(Http2Rule::kProtocol, "only a server may send PUSH_PROMISE");
    default:
      // Do not limit frames of other types, because gRPC itself limits their cost.
      return true;
  }
}

bool Http2Guard::OnHeaders(const Http2Frame& frame) {
  if (frame.stream % 2 == 0) {
    return Break(Http2Rule::kProtocol,
                 absl::StrCat("HEADERS came for stream ", frame.stream,
                              "; the number of a caller's stream must be odd"));
  }
  if (frame.stream > last_stream_) {
    if (streams_.size() >= static_cast<size_t>(limits_.open_streams)) {
      return Break(Http2Rule::kOpenStreams,
                   absl::StrCat("the connection has more than ", limits_.open_streams,
                                " open streams, the most that SETTINGS_MAX_CONCURRENT_STREAMS of "
                                "this server allows"));
    }
    last_stream_ = frame.stream;
    streams_.emplace(frame.stream, Stream());
    ++unanswered_;
  } else if (!CountReset()) {
    // Refuse trailers: gRPC clients send none, and more headers on a stream cost gRPC as much as a
    // reset.
    return false;
  }
  if (frame.Has(kHttp2EndStream)) EndOf(frame.stream, &Stream::caller_ended);
  block_stream_ = frame.stream;
  block_bytes_ = 0;
  block_continuations_ = 0;
  return GrowBlock(frame);
}

bool Http2Guard::OnContinuation(const Http2Frame& frame) {
  if (block_stream_ == 0) {
    return Break(Http2Rule::kProtocol,
                 absl::StrCat("stream ", frame.stream, ": CONTINUATION came without HEADERS"));
  }
  if (++block_continuations_ > limits_.continuations) {
    return Break(Http2Rule::kHeaderBlock,
                 absl::StrCat("stream ", frame.stream, ": its headers have more than ",
                              limits_.continuations, " CONTINUATION frames"));
  }
  return GrowBlock(frame);
}

bool Http2Guard::GrowBlock(const Http2Frame& frame) {
  block_bytes_ += frame.length;
  if (block_bytes_ > static_cast<uint32_t>(limits_.header_block_bytes)) {
    return Break(Http2Rule::kHeaderBlock,
                 absl::StrCat("stream ", frame.stream, ": its headers have more than ",
                              limits_.header_block_bytes, " bytes"));
  }
  if (frame.Has(kHttp2EndHeaders)) block_stream_ = 0;
  return true;
}

void Http2Guard::OnServerFrame(const Http2Frame& frame) {
  if (frame.type == Http2Type::kReset) {
    OnReset(frame, /*by_caller=*/false);
  } else if ((frame.type == Http2Type::kHeaders || frame.type == Http2Type::kData) &&
             frame.Has(kHttp2EndStream)) {
    EndOf(frame.stream, &Stream::server_ended);
  }
}

void Http2Guard::EndOf(uint32_t stream, bool Stream::*side) {
  const auto found = streams_.find(stream);
  if (found == streams_.end() || found->second.*side) return;
  found->second.*side = true;
  if (side == &Stream::server_ended) --unanswered_;
  if (found->second.caller_ended && found->second.server_ended) streams_.erase(found);
}

bool Http2Guard::OnReset(const Http2Frame& frame, bool by_caller) {
  const auto found = streams_.find(frame.stream);
  const bool open = found != streams_.end();
  const bool answered = open && found->second.server_ended;
  if (open) {
    if (!answered) --unanswered_;
    streams_.erase(found);
  }
  // A reset is harmless after the answer. gRPC also sends one if it answers before the caller has
  // sent everything.
  const bool harmless = by_caller ? answered : !open || answered || frame.error_code == kNoError;
  return harmless || CountReset();
}

bool Http2Guard::CountReset() {
  ++new_resets_;
  if (resets_.Take(1, clock_.Now())) return true;
  return Break(
      Http2Rule::kResets,
      absl::StrCat("the connection has reset too many calls before they were answered: "
                   "it may reset ",
                   limits_.resets.most, " at once and ", limits_.resets.per_second, " a second"));
}

bool Http2Guard::Break(Http2Rule rule, std::string text) {
  violation_ = Http2Violation{rule, std::move(text)};
  return false;
}

}  // namespace wan::server
