// Widens a tensor that a file does not keep as an array of its dtype, but in blocks of a few bits
// (GGUF), or as codes of 8 bits with scales.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "engine/formats/dtype.h"

namespace wan {

// Codes of 8 bits whose rows have one scale each: a value is its code times the row's scale.
struct ScaledRows {
  DType code = DType::kFloat8E4M3;  // or kInt8
  std::vector<float> scales;        // one for each row, or one for all
};

// Immutable and thread-safe. The values are computed in fp32 and rounded to bf16.
class TensorDecoder {
 public:
  virtual ~TensorDecoder() = default;

  // Returns the name of the stored format for reports, for example "Q4_K".
  virtual std::string_view name() const = 0;
  // Return the number of consecutive elements that are coded together, and the bytes of their code.
  virtual size_t block_elements() const = 0;
  virtual size_t block_bytes() const = 0;

  // Decodes some blocks. `first` is the index in the tensor of the first element, a multiple of
  // block_elements(). `codes` are the blocks' bytes, and `out` has room for their elements. Any
  // bytes are valid codes, because files are not trusted.
  virtual void Decode(size_t first, std::span<const std::byte> codes,
                      std::span<uint16_t> out) const = 0;

  // Returns the codes' dtype and scales if matrix products can take the codes directly; otherwise
  // null.
  virtual const ScaledRows* scaled_rows() const { return nullptr; }
};

}  // namespace wan
