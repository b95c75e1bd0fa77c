#include "engine/checkpoint/weight_source.h"

#include <algorithm>
#include <cstring>

namespace wan {
namespace {

// Number of values that are converted at a time.
constexpr size_t kWidened = 1 << 14;

absl::Status ReadBytes(const TensorBytes& source, std::span<const std::byte> part, std::byte* out) {
  if (source.file != nullptr) return source.file->Read(part, out);
  std::memcpy(out, part.data(), part.size());
  return absl::OkStatus();
}

// Fills `out` with the converted values from byte `begin` on.
absl::Status ReadWidened(const TensorBytes& source, size_t begin, std::span<std::byte> out) {
  const TensorDecoder& decoder = *source.decoder;
  const size_t in_block = decoder.block_elements();
  const size_t blocks_at_once = std::max<size_t>(kWidened / in_block, 1);
  std::vector<std::byte> codes(blocks_at_once * decoder.block_bytes());
  std::vector<uint16_t> values(blocks_at_once * in_block);
  const size_t end = begin + out.size();
  const size_t all_blocks = source.bytes.size() / decoder.block_bytes();
  const size_t block_size = in_block * sizeof(uint16_t);  // in bytes of the values
  for (size_t block = begin / block_size; block * block_size < end; block += blocks_at_once) {
    const size_t last = std::min((end + block_size - 1) / block_size, all_blocks);
    const size_t count = std::min(blocks_at_once, last - block);
    const std::span<std::byte> some = std::span(codes).first(count * decoder.block_bytes());
    absl::Status status = ReadBytes(
        source, source.bytes.subspan(block * decoder.block_bytes(), some.size()), some.data());
    if (!status.ok()) return status;
    decoder.Decode(block * in_block, some, std::span(values).first(count * in_block));
    const size_t from = std::max(begin, block * block_size);
    const size_t to = std::min(end, (block + count) * block_size);
    std::memcpy(out.data() + (from - begin),
                std::as_bytes(std::span(values)).data() + (from - block * block_size), to - from);
  }
  return absl::OkStatus();
}

}  // namespace

TensorBytes TensorBytes::Part(size_t offset, size_t count) const {
  TensorBytes part = *this;
  if (decoder == nullptr) {
    part.bytes = bytes.subspan(offset, count);
  } else {
    part.begin = begin + offset;
    part.end = part.begin + count;
  }
  return part;
}

absl::Status TensorBytes::Read(size_t offset, std::span<std::byte> out) const {
  if (decoder != nullptr) return ReadWidened(*this, begin + offset, out);
  return ReadBytes(*this, bytes.subspan(offset, out.size()), out.data());
}

}  // namespace wan
