#include "engine/formats/dtype.h"

#include <array>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace wan {
namespace {

struct DTypeTraits {
  DType dtype;
  std::string_view name;
  size_t size;
};

// The names are in the order of the enumerators.
constexpr std::array<DTypeTraits, 12> kDTypes{{
    {DType::kFloat64, "F64", 8},
    {DType::kFloat32, "F32", 4},
    {DType::kFloat16, "F16", 2},
    {DType::kBFloat16, "BF16", 2},
    {DType::kInt64, "I64", 8},
    {DType::kInt32, "I32", 4},
    {DType::kInt16, "I16", 2},
    {DType::kInt8, "I8", 1},
    {DType::kUInt8, "U8", 1},
    {DType::kBool, "BOOL", 1},
    {DType::kFloat8E4M3, "F8_E4M3", 1},
    {DType::kFloat8E5M2, "F8_E5M2", 1},
}};

}  // namespace

size_t DTypeSize(DType dtype) { return kDTypes[static_cast<size_t>(dtype)].size; }

std::string_view DTypeName(DType dtype) { return kDTypes[static_cast<size_t>(dtype)].name; }

std::optional<DType> DTypeFromName(std::string_view name) {
  for (const DTypeTraits& traits : kDTypes) {
    if (traits.name == name) return traits.dtype;
  }
  return std::nullopt;
}

std::optional<int64_t> ElementCount(std::span<const int64_t> shape) {
  int64_t count = 1;
  for (const int64_t extent : shape) {
    if (extent < 0 || __builtin_mul_overflow(count, extent, &count)) return std::nullopt;
  }
  return count;
}

std::string ShapeText(std::span<const int64_t> shape) {
  return absl::StrCat("[", absl::StrJoin(shape, ", "), "]");
}

}  // namespace wan
