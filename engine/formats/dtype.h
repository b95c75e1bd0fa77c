// The element types and shapes of tensors in files. This header does not need LibTorch. All
// functions are thread-safe.
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

// Returns the number of bytes of an element.
size_t DTypeSize(DType dtype);

// Returns the name that safetensors headers use, for example "BF16".
std::string_view DTypeName(DType dtype);

// Returns the type with this name (see DTypeName); nullopt for any other text.
std::optional<DType> DTypeFromName(std::string_view name);

// Returns the number of elements that a tensor of this shape has; 1 for the empty shape of a
// scalar. Returns nullopt if a dimension is negative or the product does not fit into 64 bits.
std::optional<int64_t> ElementCount(std::span<const int64_t> shape);

// Returns the shape as text for messages: "[64, 64]".
std::string ShapeText(std::span<const int64_t> shape);

}  // namespace wan
