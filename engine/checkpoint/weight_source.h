// The named tensors of one component of a checkpoint; the names do not depend on the layout on
// disk.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/formats/dtype.h"
#include "engine/formats/mapped_file.h"
#include "engine/formats/tensor_decoder.h"

namespace wan {

struct TensorInfo {
  std::string name;  // the canonical (upstream's) name, for example "blocks.0.self_attn.q.weight"
  DType dtype = DType::kFloat32;
  std::vector<int64_t> shape;
  uint64_t bytes = 0;  // number of elements times DTypeSize
  std::string file;    // path of the file that has the tensor, for messages
  // The format of the tensor in the file, for example "BF16", "Q4_K" or "F8_E4M3 scaled". If
  // `stored_as` is not the name of `dtype`, TensorBytes::Read converts the values to `dtype`.
  std::string stored_as;
};

struct TensorBytes {
  // Without `decoder`, the values: contiguous, row-major, little endian, aligned to the dtype. With
  // `decoder`, the blocks that it decodes.
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> owner;  // keeps the memory of `bytes` valid
  const MappedFile* file = nullptr;   // the file that `bytes` maps; null if `bytes` are a copy
  // Computes the values from `bytes`; null: the bytes are the values.
  std::shared_ptr<const TensorDecoder> decoder = nullptr;
  // Only with a decoder: the range of the decoded values, in bytes of bf16, that this object stands
  // for.
  size_t begin = 0;
  size_t end = 0;

  // Returns the number of bytes of the values.
  size_t size() const { return decoder == nullptr ? bytes.size() : end - begin; }
  // Returns `count` bytes of the values from `offset` on; there must be enough of them.
  TensorBytes Part(size_t offset, size_t count) const;

  // Fills `out` with the bytes of the values that begin at `offset`; there must be enough of them.
  // Files are read with MappedFile::Read, whose errors this function returns. Any thread may call
  // Read.
  absl::Status Read(size_t offset, std::span<std::byte> out) const;
};

// All objects are immutable after construction and thread-safe.
class WeightSource {
 public:
  virtual ~WeightSource() = default;

  // Returns all tensors, sorted by name.
  virtual const std::vector<TensorInfo>& Tensors() const = 0;

  // Returns the tensor with this canonical name; nullptr if there is none.
  virtual const TensorInfo* Find(std::string_view name) const = 0;

  // Returns the bytes of one of this source's tensors. The bytes are a view of the mapped file, or
  // a copy if they are not aligned in the file; if they have a decoder, only TensorBytes::Read
  // gives the values. The bytes stay valid as long as `owner` lives, even if the source does not.
  // Read them with TensorBytes::Read: access through the view raises SIGBUS if somebody has
  // truncated the file. NOT_FOUND for an unknown name, FAILED_PRECONDITION if the source is
  // synthetic.
  virtual absl::StatusOr<TensorBytes> Read(const TensorInfo& tensor) const = 0;

  // Returns whether the tensors have names, shapes and dtypes but no bytes. Loading then fills them
  // with random numbers from a seed.
  virtual bool IsSynthetic() const { return false; }

  // Only for synthetic sources: returns the seed of the numbers, which also depend on each tensor's
  // name and shape. Experts have different seeds, so that their weights differ.
  virtual uint64_t SyntheticSeed() const { return 0; }
};

}  // namespace wan
