// The element types and shapes of tensors in files. Free of LibTorch. All functions are
// thread-safe.
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

// Returns the bytes per element.
size_t DTypeSize(DType dtype);

// Returns the name that safetensors headers use, for example "BF16".
std::string_view DTypeName(DType dtype);

// Inverse of DTypeName; nullopt for any other text.
std::optional<DType> DTypeFromName(std::string_view name);

// Returns the number of elements of a tensor; 1 for a scalar's empty shape. Returns nullopt if a
// dimension is negative or the product does not fit into 64 bits.
std::optional<int64_t> ElementCount(std::span<const int64_t> shape);

// Returns the shape as text for messages: "[64, 64]".
std::string ShapeText(std::span<const int64_t> shape);

}  // namespace wan
