#include "tests/support/unread_calls.h"

#include <cstddef>
#include <utility>

namespace wan::support {
namespace {

// Kinds of frames and their flags, as RFC 9113 numbers them.
constexpr unsigned char kData = 0;
constexpr unsigned char kHeaders = 1;
constexpr unsigned char kReset = 3;
constexpr unsigned char kSettings = 4;
constexpr unsigned char kEndStream = 1;
constexpr unsigned char kEndHeaders = 4;
constexpr unsigned char kAcknowledged = 1;
constexpr size_t kFrameHeader = 9;

// A number of so many bytes, the highest one first.
std::string BigEndian(size_t number, int bytes) {
  std::string text;
  for (int i = bytes - 1; i >= 0; --i) text.push_back(static_cast<char>(number >> (8 * i)));
  return text;
}

std::string Frame(unsigned char type, unsigned char flags, unsigned stream, std::string_view body) {
  std::string frame = BigEndian(body.size(), 3);
  frame.push_back(static_cast<char>(type));
  frame.push_back(static_cast<char>(flags));
  return frame + BigEndian(stream, 4) + std::string(body);
}

// A header as HPACK writes one that is in no table.
std::string Header(std::string_view name, std::string_view value) {
  std::string bytes(1, '\0');
  for (const std::string_view text : {name, value}) {
    bytes.push_back(static_cast<char>(text.size()));  // below 127
    bytes.append(text);
  }
  return bytes;
}

}  // namespace

UnreadCalls::UnreadCalls(int port, std::string token)
    : connection_(port), token_(std::move(token)) {
  constexpr char kInitialWindow = 4;
  connection_.Send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
  connection_.Send(Frame(kSettings, 0, 0, std::string({'\0', kInitialWindow}) + BigEndian(0, 4)));
  // The server's own settings, which it has sent or is about to send.
  connection_.Send(Frame(kSettings, kAcknowledged, 0, ""));
}

void UnreadCalls::Begin(std::string_view path, std::string_view request) {
  std::string headers = Header(":method", "POST") + Header(":scheme", "http") +
                        Header(":path", path) + Header(":authority", "localhost") +
                        Header("content-type", "application/grpc") + Header("te", "trailers");
  if (!token_.empty()) headers += Header("authorization", "Bearer " + token_);
  const std::string message =
      std::string(1, '\0') + BigEndian(request.size(), 4) + std::string(request);
  connection_.Send(Frame(kHeaders, kEndHeaders, next_stream_, headers) +
                   Frame(kData, kEndStream, next_stream_, message));
  next_stream_ += 2;
}

bool UnreadCalls::AwaitResets(int count) {
  unsigned char type = 0;
  while (resets_ < count) {
    if (!ReadFrame(&type)) return false;
    if (type == kReset) ++resets_;
  }
  return true;
}

bool UnreadCalls::ReadFrame(unsigned char* type) {
  const std::string header = connection_.Read(kFrameHeader);
  if (header.size() < kFrameHeader) return false;
  size_t size = 0;
  for (int i = 0; i < 3; ++i) size = size << 8 | static_cast<unsigned char>(header[i]);
  *type = static_cast<unsigned char>(header[3]);
  return connection_.Read(size).size() == size;
}

}  // namespace wan::support
