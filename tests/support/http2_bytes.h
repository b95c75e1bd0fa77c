// Frames of HTTP/2 as bytes, for tests that speak it by hand.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace wan::support {

inline constexpr std::string_view kHttp2Preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

enum : uint8_t {
  kData = 0,
  kHeaders = 1,
  kReset = 3,
  kSettings = 4,
  kPushPromise = 5,
  kPing = 6,
  kGoAway = 7,
  kContinuation = 9,
};
enum : uint8_t { kEndStream = 1, kEndHeaders = 4 };

inline std::string BigEndian(uint32_t number, int bytes) {
  std::string text;
  for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8) {
    text.push_back(static_cast<char>(number >> shift & 0xff));
  }
  return text;
}

inline std::string Frame(uint8_t type, uint8_t flags, uint32_t stream, std::string_view payload) {
  std::string frame = BigEndian(static_cast<uint32_t>(payload.size()), 3);
  frame += BigEndian(type, 1) + BigEndian(flags, 1) + BigEndian(stream, 4);
  return frame.append(payload);
}

inline std::string ResetFrame(uint32_t stream, uint32_t code = 8) {
  return Frame(kReset, 0, stream, BigEndian(code, 4));
}

// What a caller sends first.
inline std::string Hello() { return std::string(kHttp2Preface) + Frame(kSettings, 0, 0, ""); }

// A block of headers that calls health; no bytes of it refer to a table.
inline std::string HealthCheckHeaders() {
  std::string block;
  const auto add = [&](std::string_view name, std::string_view value) {
    block += '\0';
    block += static_cast<char>(name.size());
    block.append(name);
    block += static_cast<char>(value.size());
    block.append(value);
  };
  add(":method", "POST");
  add(":scheme", "http");
  add(":path", "/grpc.health.v1.Health/Check");
  add(":authority", "test");
  add("content-type", "application/grpc");
  add("te", "trailers");
  return block;
}

// An empty message of gRPC.
inline std::string EmptyMessage() { return std::string(5, '\0'); }

}  // namespace wan::support
