// Reads the little-endian bytes of an untrusted file one after the other, and checks every read
// against the end.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace wan {

// A read beyond the end returns zero or an empty view, and from then on failed() is true. So the
// caller can read all fields of a record and check once. The bytes must outlive the reader and
// every view that it returns. Not thread-safe.
class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes, uint64_t position = 0)
      : bytes_(bytes), position_(position), failed_(position > bytes.size()) {}

  // Returns the next integer and moves past it.
  template <typename Integer>
  Integer Read() {
    static_assert(std::endian::native == std::endian::little);
    Integer value{};
    const std::span<const std::byte> raw = Take(sizeof(Integer));
    if (!raw.empty()) std::memcpy(&value, raw.data(), sizeof(Integer));
    return value;
  }

  // Returns the next `size` bytes as text and moves past them.
  std::string_view ReadText(uint64_t size) {
    const std::span<const std::byte> raw = Take(size);
    return {reinterpret_cast<const char*>(raw.data()), raw.size()};
  }

  // Returns the text up to the next newline, and moves past both. If there is no newline, the read
  // fails.
  std::string_view ReadLine() {
    const std::string_view rest = {reinterpret_cast<const char*>(bytes_.data()), bytes_.size()};
    const size_t end = failed_ ? std::string_view::npos : rest.find('\n', position_);
    if (end == std::string_view::npos) {
      failed_ = true;
      return {};
    }
    const std::string_view line = rest.substr(position_, end - position_);
    position_ = end + 1;
    return line;
  }

  // Returns the next `size` bytes and moves past them.
  std::span<const std::byte> Take(uint64_t size) {
    if (failed_ || size > bytes_.size() - position_) {
      failed_ = true;
      return {};
    }
    const std::span<const std::byte> taken = bytes_.subspan(position_, size);
    position_ += size;
    return taken;
  }

  uint64_t position() const { return position_; }
  bool AtEnd() const { return failed_ || position_ == bytes_.size(); }
  bool failed() const { return failed_; }

 private:
  std::span<const std::byte> bytes_;
  uint64_t position_;
  bool failed_;
};

}  // namespace wan
