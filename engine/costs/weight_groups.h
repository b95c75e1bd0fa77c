// The weights of a component, in the groups of its ComponentWeights but computed from its
// dimensions alone. ExpectedTensors gives names and shapes; engine/costs/wan/*_cost.h add group,
// packing and dtype.
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
  kFp32,     // fp32, whatever the compute dtype is
  kCompute,  // the component's compute dtype
  kRounded,  // a matrix in 8 bits; its scales have separate memory (engine/ops/rounding.h)
};

// One block of device memory, with one or several tensors of the checkpoint.
struct PackedWeight {
  // The checkpoint's tensors in this block, one after the other.
  std::vector<TensorSpec> tensors;
  WeightDtype dtype = WeightDtype::kFp32;
  std::string pack;  // a name that tensors packed together share; empty: not packed

  int64_t Bytes(int64_t element_bytes) const;
  // Bytes of the fp32 scales, one for each row; 0 if the tensor is not rounded.
  int64_t ScaleBytes() const;
};

// The bytes of device memory that the groups of a component take.
struct WeightFootprint {
  uint64_t bytes = 0;
  // For streamed weights: the bytes of the first group, which stays on the device while the
  // component works, and the bytes of the largest other group.
  uint64_t base_bytes = 0;
  uint64_t group_bytes = 0;
};

// A tensor's position in a transformer block: "blocks.12.ffn.0.bias" is {12, "ffn.0.bias"}.
struct BlockTensor {
  size_t block = 0;
  std::string_view name;  // points into the tensor's name
};

// Returns nullopt for a tensor outside the transformer blocks.
std::optional<BlockTensor> FindInBlock(std::string_view name);

class WeightGroups {
 public:
  // Starts with `count` empty groups.
  explicit WeightGroups(size_t count) : groups_(count) {}

  // Appends `tensor` to `group`. If `pack` is not empty, the tensor joins the group's tensors with
  // the same `pack`, which must have the same dtype.
  void Add(size_t group, TensorSpec tensor, WeightDtype dtype, std::string_view pack = {});

  const std::vector<std::vector<PackedWeight>>& groups() const { return groups_; }

  // `element_bytes` is the size of one element of the compute dtype. Sizes are rounded as
  // LibTorch's GPU allocator rounds them.
  WeightFootprint Footprint(int64_t element_bytes) const;

 private:
  std::vector<std::vector<PackedWeight>> groups_;
};

}  // namespace wan
