#include "engine/formats/scalar_tensor.h"

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

namespace wan {
namespace {

template <typename T>
T LoadAs(std::span<const std::byte> bytes) {
  T value;
  std::memcpy(&value, bytes.data(), sizeof(value));
  return value;
}

double HalfToDouble(uint16_t bits) {
  const int exponent = (bits >> 10) & 0x1F;
  const double fraction = (bits & 0x3FF) / 1024.0;
  if (exponent == 0x1F) return std::nan("");
  const double size =
      exponent == 0 ? std::ldexp(fraction, -14) : std::ldexp(1 + fraction, exponent - 15);
  return (bits & 0x8000) != 0 ? -size : size;
}

}  // namespace

absl::StatusOr<std::optional<double>> ReadScalar(const MappedFile& file,
                                                 const StoredTensor& tensor) {
  if (ElementCount(tensor.shape) != 1) return std::nullopt;
  const absl::StatusOr<std::vector<std::byte>> bytes = file.Copy(tensor.bytes);
  if (!bytes.ok()) return bytes.status();
  double value = 0;
  switch (tensor.dtype) {
    case DType::kFloat64:
      value = LoadAs<double>(*bytes);
      break;
    case DType::kFloat32:
      value = LoadAs<float>(*bytes);
      break;
    case DType::kFloat16:
      value = HalfToDouble(LoadAs<uint16_t>(*bytes));
      break;
    case DType::kBFloat16:
      value = std::bit_cast<float>(static_cast<uint32_t>(LoadAs<uint16_t>(*bytes)) << 16);
      break;
    case DType::kInt64:
      value = static_cast<double>(LoadAs<int64_t>(*bytes));
      break;
    case DType::kInt32:
      value = LoadAs<int32_t>(*bytes);
      break;
    default:
      return std::nullopt;
  }
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

}  // namespace wan
