// From a mapped file to a device: several threads read it into locked buffers, and while one of
// these travels the others are filled. There is no copy of a whole tensor in host memory.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/models/weight_mover.h"

namespace wan {

class StagedUpload {
 public:
  static constexpr int64_t kChunkBytes = int64_t{4} << 20;

  // Two buffers of `chunk_bytes` for each of LibTorch's threads. `mover` must outlive the object.
  explicit StagedUpload(WeightMover& mover, int64_t chunk_bytes = kChunkBytes);
  // Waits for what is on its way.
  ~StagedUpload();
  StagedUpload(const StagedUpload&) = delete;
  StagedUpload& operator=(const StagedUpload&) = delete;

  // device := source; `device` is kByte and contiguous. When the call returns, the source has been
  // read, and what is computed from there on finds the bytes.
  void Copy(std::span<const std::byte> source, const at::Tensor& device);

 private:
  struct Buffer {
    at::Tensor memory;
    WeightMover::Mark departure;
  };
  struct Lane {
    std::array<Buffer, 2> buffers;
    size_t next = 0;
  };

  Buffer& NextBuffer(Lane& lane);

  WeightMover& mover_;
  const int64_t chunk_bytes_;
  std::vector<Lane> lanes_;  // by thread
};

}  // namespace wan
