// The named tensors of one component of a checkpoint, independent of the layout on disk.
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
  std::string name;  // canonical, that is upstream's: "blocks.0.self_attn.q.weight"
  DType dtype = DType::kFloat32;
  std::vector<int64_t> shape;
  uint64_t bytes = 0;  // the number of elements times DTypeSize
  std::string file;    // the file that holds it, for messages
};

struct TensorBytes {
  std::span<const std::byte> bytes;   // contiguous, row-major, little endian, aligned to its dtype
  std::shared_ptr<const void> owner;  // keeps `bytes` valid
  const MappedFile* file = nullptr;   // the file that holds `bytes`; null if they are a copy

  // Fills `out` with the bytes from `offset` on, of which there must be enough. Bytes of a file are
  // read as MappedFile::Read does, with its errors. Any thread may call it.
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

  // Returns the bytes of a tensor of this source: a view of the mapped file, or a copy where the
  // file does not align its data. The bytes are valid as long as `owner` lives, even after the
  // source has died. Read them with TensorBytes::Read; reading through the view ends the process
  // (SIGBUS) if the file was shortened. NOT_FOUND for a name that the source does not have,
  // FAILED_PRECONDITION if the source is synthetic.
  virtual absl::StatusOr<TensorBytes> Read(const TensorInfo& tensor) const = 0;

  // Returns whether the source has no bytes. Its names, shapes and dtypes are then those of a real
  // checkpoint, and the loader fills the tensors with seeded random numbers.
  virtual bool IsSynthetic() const { return false; }

  // For synthetic sources: the seed of the numbers, which also depend on the name and shape of a
  // tensor. Two experts have different seeds, so that their numbers differ.
  virtual uint64_t SyntheticSeed() const { return 0; }
};

}  // namespace wan
