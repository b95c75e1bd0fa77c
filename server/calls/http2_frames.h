// Finds the frames of HTTP/2 (RFC 9113) in a byte stream that arrives in arbitrary pieces.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace wan::server {

enum class Http2Type : uint8_t {
  kData = 0,
  kHeaders = 1,
  kReset = 3,
  kPushPromise = 5,
  kGoAway = 7,
  kContinuation = 9,
};

inline constexpr uint8_t kHttp2EndStream = 0x1;
inline constexpr uint8_t kHttp2EndHeaders = 0x4;

inline constexpr size_t kHttp2HeadBytes = 9;

struct Http2Frame {
  uint32_t length = 0;  // bytes of payload
  Http2Type type{};     // frame types that the enum does not name are possible
  uint8_t flags = 0;
  uint32_t stream = 0;
  uint32_t error_code = 0;  // set only for a kReset frame with 4 bytes of payload

  bool Has(uint8_t flag) const { return (flags & flag) != 0; }
};

// Reads the bytes that travel in one direction of a connection. Stores no payload, so a peer that
// announces long frames costs no memory.
class Http2FrameReader {
 public:
  // Reads the bytes that have arrived next. Calls `on_frame(const Http2Frame&)` for each frame as
  // soon as its header is complete (for a kReset also its error code). If `on_frame` returns false,
  // stops and returns false; then do not call Read again.
  template <typename OnFrame>
  bool Read(std::string_view bytes, OnFrame on_frame) {
    while (!bytes.empty()) {
      if (rest_ > 0) {
        const auto skipped = std::min<size_t>(rest_, bytes.size());
        rest_ -= static_cast<uint32_t>(skipped);
        bytes.remove_prefix(skipped);
        if (rest_ == 0) have_ = 0;
        continue;
      }
      const size_t taken = std::min(Wanted() - have_, bytes.size());
      std::memcpy(head_.data() + have_, bytes.data(), taken);
      have_ += taken;
      bytes.remove_prefix(taken);
      if (have_ < Wanted()) continue;
      const Http2Frame frame = Parse();
      rest_ = frame.length - static_cast<uint32_t>(have_ - kHttp2HeadBytes);
      if (!on_frame(frame)) return false;
      if (rest_ == 0) have_ = 0;
    }
    return true;
  }

  // Number of bytes of an incomplete frame that were read; 0 between two frames.
  size_t unfinished() const {
    if (rest_ == 0) return have_;
    return kHttp2HeadBytes + Length() - rest_;
  }

 private:
  static constexpr size_t kCodeBytes = 4;

  uint32_t Number(size_t at, size_t bytes) const {
    uint32_t number = 0;
    for (size_t i = at; i < at + bytes; ++i) number = number << 8 | head_[i];
    return number;
  }
  uint32_t Length() const { return Number(0, 3); }
  bool HasCode() const {
    return static_cast<Http2Type>(head_[3]) == Http2Type::kReset && Length() == kCodeBytes;
  }
  // Number of bytes that must be read before the current frame can be reported.
  size_t Wanted() const {
    return have_ >= kHttp2HeadBytes && HasCode() ? kHttp2HeadBytes + kCodeBytes : kHttp2HeadBytes;
  }
  Http2Frame Parse() const {
    return {Length(), static_cast<Http2Type>(head_[3]), head_[4], Number(5, 4) & 0x7fffffff,
            HasCode() ? Number(kHttp2HeadBytes, kCodeBytes) : 0};
  }

  std::array<uint8_t, kHttp2HeadBytes + kCodeBytes> head_{};
  size_t have_ = 0;    // number of bytes in head_
  uint32_t rest_ = 0;  // payload bytes of the current frame that have not arrived yet
};

}  // namespace wan::server
