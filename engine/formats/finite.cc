#include "engine/formats/finite.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace wan {
namespace {

// An element is NaN or infinite if all bits of its exponent are set.
template <typename Bits>
std::optional<size_t> Find(std::span<const std::byte> bytes, Bits exponent) {
  constexpr size_t kBlock = 4096;  // number of elements that are checked before a branch
  const size_t count = bytes.size() / sizeof(Bits);
  Bits block[kBlock];
  for (size_t first = 0; first < count; first += kBlock) {
    const size_t size = std::min(kBlock, count - first);
    std::memcpy(block, bytes.data() + first * sizeof(Bits), size * sizeof(Bits));
    unsigned found = 0;
    for (size_t i = 0; i < size; ++i) found |= (block[i] & exponent) == exponent ? 1U : 0U;
    if (found == 0) continue;
    const Bits* const element =
        std::find_if(block, block + size, [&](Bits bits) { return (bits & exponent) == exponent; });
    return first + static_cast<size_t>(element - block);
  }
  return std::nullopt;
}

}  // namespace

std::optional<size_t> FirstNotFinite(std::span<const std::byte> bytes, DType dtype) {
  switch (dtype) {
    case DType::kFloat64:
      return Find<uint64_t>(bytes, 0x7FF0'0000'0000'0000);
    case DType::kFloat32:
      return Find<uint32_t>(bytes, 0x7F80'0000);
    case DType::kFloat16:
      return Find<uint16_t>(bytes, 0x7C00);
    case DType::kBFloat16:
      return Find<uint16_t>(bytes, 0x7F80);
    default:
      return std::nullopt;
  }
}

}  // namespace wan
