// Element types and shapes of tensors as files have them. No LibTorch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace wan {

enum class DType {
  kFloat64,
  kFloat32,
  kFloat16,
  kBFloat16,
  kInt64,
  kInt32,
  kInt16,
  kInt8,
  kUInt8,
  kBool,
  kFloat8E4M3,
  kFloat8E5M2,
};

// Bytes of one element.
size_t DTypeSize(DType dtype);

// The name that safetensors headers use, for example "BF16".
std::string_view DTypeName(DType dtype);

// Inverse of DTypeName; nullopt for any other text.
std::optional<DType> DTypeFromName(std::string_view name);

// Elements of a tensor of that shape (1 for a scalar's empty shape); nullopt if a dimension is
// negative or the product does not fit.
std::optional<int64_t> ElementCount(std::span<const int64_t> shape);

// "[64, 64]", for messages.
std::string ShapeText(std::span<const int64_t> shape);

}  // namespace wan
