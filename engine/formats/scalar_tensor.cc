#include "engine/formats/scalar_tensor.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "engine/formats/small_floats.h"

namespace wan {
namespace {

template <typename T>
T LoadAs(std::span<const std::byte> bytes) {
  T value;
  std::memcpy(&value, bytes.data(), sizeof(value));
  return value;
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
      value = FromHalf(LoadAs<uint16_t>(*bytes));
      break;
    case DType::kBFloat16:
      value = FromBFloat16(LoadAs<uint16_t>(*bytes));
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
