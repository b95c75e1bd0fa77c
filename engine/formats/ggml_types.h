// The types of the tensors in GGUF files. A type stores each element in a few bits of a block,
// which also has the scales of its elements.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "engine/formats/dtype.h"
#include "engine/formats/tensor_decoder.h"

namespace wan {

struct GgmlType {
  std::string_view name;       // for example "Q4_K"
  std::optional<DType> plain;  // set if the tensor is a plain array of this dtype
  // Widens the blocks; null for a plain type and for a type that is not read.
  std::shared_ptr<const TensorDecoder> decoder;

  bool IsRead() const { return plain.has_value() || decoder != nullptr; }
};

// Returns the type with this number in the file format; nullopt if the number is not known.
// Thread-safe.
std::optional<GgmlType> FindGgmlType(uint32_t number);

// Lists the names of all types that are read: "F32, F16, ...". Thread-safe.
std::string ReadGgmlTypes();

}  // namespace wan
