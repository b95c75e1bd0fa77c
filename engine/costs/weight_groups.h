// The weights of a component, grouped as in its ComponentWeights but computed from its dimensions
// alone. Names and shapes come from ExpectedTensors; engine/costs/wan/*_cost.h add group, packing
// and dtype.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/checkpoint/expected_tensors.h"

namespace wan {

enum class WeightDtype {
  kFp32,     // always
  kCompute,  // the component's compute dtype
};

// One block of device memory.
struct PackedWeight {
  // The checkpoint's tensors in it, one after the other.
  std::vector<TensorSpec> tensors;
  WeightDtype dtype = WeightDtype::kFp32;
  std::string pack;  // equal for tensors packed together; empty: not packed

  int64_t Bytes(int64_t element_bytes) const;
};

// The device memory of a component's groups, in bytes.
struct WeightFootprint {
  uint64_t bytes = 0;
  // If weights are streamed: bytes of the first group, which stays on the device while the
  // component works, and of the largest other group.
  uint64_t base_bytes = 0;
  uint64_t group_bytes = 0;
};

// A tensor's position inside a block: "blocks.12.ffn.0.bias" is {12, "ffn.0.bias"}.
struct BlockTensor {
  size_t block = 0;
  std::string_view name;  // points into the tensor's name
};

// Returns nullopt for a tensor outside the blocks.
std::optional<BlockTensor> FindInBlock(std::string_view name);

class WeightGroups {
 public:
  // Starts with `count` empty groups.
  explicit WeightGroups(size_t count) : groups_(count) {}

  // Adds `tensor` to the end of `group`. With a non-empty `pack` it is appended to the group's
  // tensors of the same `pack`, which must have the same dtype.
  void Add(size_t group, TensorSpec tensor, WeightDtype dtype, std::string_view pack = {});

  const std::vector<std::vector<PackedWeight>>& groups() const { return groups_; }

  // `element_bytes` is per element of the compute dtype. Rounds as LibTorch's allocator does.
  WeightFootprint Footprint(int64_t element_bytes) const;

 private:
  std::vector<std::vector<PackedWeight>> groups_;
};

}  // namespace wan
