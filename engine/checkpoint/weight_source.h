// Named tensors of one component of a checkpoint, whatever the layout on disk.
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
  std::string name;  // canonical: upstream's, for example "blocks.0.self_attn.q.weight"
  DType dtype = DType::kFloat32;
  std::vector<int64_t> shape;
  uint64_t bytes = 0;  // product of shape times DTypeSize
  std::string file;    // where it lies, for messages
};

struct TensorBytes {
  std::span<const std::byte> bytes;   // contiguous, row-major, little endian, aligned to its dtype
  std::shared_ptr<const void> owner;  // keeps `bytes` valid
  const MappedFile* file = nullptr;   // that `bytes` are a part of; null if they are a copy

  // out := the bytes from `offset` on, as many as it holds; there must be so many. From a file as
  // MappedFile::Read does it. For any thread.
  absl::Status Read(size_t offset, std::span<std::byte> out) const;
};

// Thread-safe after construction.
class WeightSource {
 public:
  virtual ~WeightSource() = default;

  // Sorted by name.
  virtual const std::vector<TensorInfo>& Tensors() const = 0;

  // nullptr if there is no such tensor.
  virtual const TensorInfo* Find(std::string_view name) const = 0;

  // The bytes of a tensor of this source: a view of the mapped file, without a copy (but where a
  // file of a foreign writer does not align its data). They are valid as long as `owner` lives,
  // even without the source. Whoever truncates the file while `bytes` are read kills the process
  // (SIGBUS): replace checkpoints by renaming, not in place. NOT_FOUND for a name the source does
  // not have, FAILED_PRECONDITION if the source is synthetic.
  virtual absl::StatusOr<TensorBytes> Read(const TensorInfo& tensor) const = 0;

  // True if there are no bytes: names, shapes and dtypes are those of a real checkpoint, and the
  // loader fills the tensors with seeded random numbers where they are needed.
  virtual bool IsSynthetic() const { return false; }

  // Of synthetic sources: what the numbers depend on besides name and shape of a tensor, so that
  // two experts do not have the same.
  virtual uint64_t SyntheticSeed() const { return 0; }
};

}  // namespace wan
