// The named tensors of one component of a checkpoint, whatever its layout on disk.
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

namespace wan {

struct TensorInfo {
  std::string name;  // canonical name (upstream's): "blocks.0.self_attn.q.weight"
  DType dtype = DType::kFloat32;
  std::vector<int64_t> shape;
  uint64_t bytes = 0;  // the number of elements times DTypeSize
  std::string file;    // path of its file, for messages
};

struct TensorBytes {
  std::span<const std::byte> bytes;   // contiguous, row-major, little endian, aligned to its dtype
  std::shared_ptr<const void> owner;  // keeps `bytes` valid
  const MappedFile* file = nullptr;   // the file that is mapped; null if `bytes` are a copy

  // Fills `out` with the bytes from `offset` on; there must be enough. Reads files with
  // MappedFile::Read, and fails as that does. Any thread may call it.
  absl::Status Read(size_t offset, std::span<std::byte> out) const;
};

// Immutable after construction, and thread-safe.
class WeightSource {
 public:
  virtual ~WeightSource() = default;

  // Returns all tensors, sorted by name.
  virtual const std::vector<TensorInfo>& Tensors() const = 0;

  // Returns nullptr if there is no such tensor.
  virtual const TensorInfo* Find(std::string_view name) const = 0;

  // Returns the bytes of a tensor of this source: a view of the mapped file, or a copy if the data
  // are not aligned there. The bytes stay valid as long as `owner` lives, even without the source.
  // Read them with TensorBytes::Read: access through the view raises SIGBUS if the file was
  // truncated. NOT_FOUND for an unknown name, FAILED_PRECONDITION if the source is synthetic.
  virtual absl::StatusOr<TensorBytes> Read(const TensorInfo& tensor) const = 0;

  // Whether the tensors have names, shapes and dtypes but no bytes; loading fills them with seeded
  // random numbers then.
  virtual bool IsSynthetic() const { return false; }

  // Synthetic sources only: the seed of the numbers, which also depend on a tensor's name and
  // shape. Experts have different seeds, so their weights differ.
  virtual uint64_t SyntheticSeed() const { return 0; }
};

}  // namespace wan
