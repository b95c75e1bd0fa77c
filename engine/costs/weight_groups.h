// The weights of a component as its loader enters them into ComponentWeights, known from the
// component's dimensions alone. Names and shapes are those of ExpectedTensors; a component's
// description (engine/costs/wan/*_cost.h) adds the group, the packing and the dtype.
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
  kCompute,  // the dtype that the component computes in
};

// One piece of memory on the device.
struct PackedWeight {
  // The checkpoint's tensors in it, one behind the other.
  std::vector<TensorSpec> tensors;
  WeightDtype dtype = WeightDtype::kFp32;
  std::string pack;  // equal for tensors that are packed; empty: the tensor is alone

  int64_t Bytes(int64_t element_bytes) const;
};

// The device memory of a component's groups, in bytes.
struct WeightFootprint {
  uint64_t bytes = 0;
  // If weights are streamed: the first group stays on the device while the component works; of
  // the others the largest.
  uint64_t base_bytes = 0;
  uint64_t group_bytes = 0;
};

// A tensor's place inside a block: "blocks.12.ffn.0.bias" is {12, "ffn.0.bias"}.
struct BlockTensor {
  size_t block = 0;
  std::string_view name;  // points into the tensor's name
};

// Returns nullopt for a tensor outside of the blocks.
std::optional<BlockTensor> FindInBlock(std::string_view name);

class WeightGroups {
 public:
  // `count` groups, all of them empty.
  explicit WeightGroups(size_t count) : groups_(count) {}

  // Adds `tensor` to the end of `group`. If that has tensors with the same `pack`, which must have
  // the same dtype, it comes behind those; an empty `pack` leaves it alone.
  void Add(size_t group, TensorSpec tensor, WeightDtype dtype, std::string_view pack = {});

  const std::vector<std::vector<PackedWeight>>& groups() const { return groups_; }

  // `element_bytes` is the size of the compute dtype. Rounds as LibTorch's allocator does.
  WeightFootprint Footprint(int64_t element_bytes) const;

 private:
  std::vector<std::vector<PackedWeight>> groups_;
};

}  // namespace wan
