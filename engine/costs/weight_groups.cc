#include "engine/costs/weight_groups.h"

#include <algorithm>
#include <charconv>
#include <system_error>
#include <utility>

#include "engine/costs/allocator_rounding.h"
#include "engine/formats/dtype.h"

namespace wan {
namespace {

constexpr int64_t kFp32Bytes = 4;

}  // namespace

int64_t PackedWeight::Bytes(int64_t element_bytes) const {
  int64_t elements = 0;
  for (const TensorSpec& tensor : tensors) {
    elements += ElementCount(tensor.shape).value_or(0);
  }
  switch (dtype) {
    case WeightDtype::kFp32:
      return elements * kFp32Bytes;
    case WeightDtype::kCompute:
      return elements * element_bytes;
    case WeightDtype::kRounded:
      return elements;
  }
  return 0;
}

int64_t PackedWeight::ScaleBytes() const {
  if (dtype != WeightDtype::kRounded) return 0;
  int64_t rows = 0;
  for (const TensorSpec& tensor : tensors) rows += tensor.shape.front();
  return rows * kFp32Bytes;
}

std::optional<BlockTensor> FindInBlock(std::string_view name) {
  constexpr std::string_view kBlocks = "blocks.";
  if (!name.starts_with(kBlocks)) return std::nullopt;
  name.remove_prefix(kBlocks.size());
  BlockTensor tensor;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), tensor.block);
  const auto digits = static_cast<size_t>(end - name.data());
  if (error != std::errc() || digits == name.size() || name[digits] != '.') return std::nullopt;
  tensor.name = name.substr(digits + 1);
  return tensor;
}

void WeightGroups::Add(size_t group, TensorSpec tensor, WeightDtype dtype, std::string_view pack) {
  std::vector<PackedWeight>& weights = groups_[group];
  const auto packed =
      pack.empty() ? weights.end()
                   : std::find_if(weights.begin(), weights.end(),
                                  [&](const PackedWeight& weight) { return weight.pack == pack; });
  if (packed != weights.end()) {
    packed->tensors.push_back(std::move(tensor));
    return;
  }
  PackedWeight& added = weights.emplace_back();
  added.tensors.push_back(std::move(tensor));
  added.dtype = dtype;
  added.pack = pack;
}

WeightFootprint WeightGroups::Footprint(int64_t element_bytes) const {
  // In the memory of a group, every tensor is aligned for the widest loads.
  constexpr int64_t kAlignment = 512;
  int64_t apart = 0;
  int64_t together = 0;
  int64_t largest = 0;
  WeightFootprint footprint;
  for (size_t i = 0; i < groups_.size(); ++i) {
    int64_t group = 0;
    for (const PackedWeight& weight : groups_[i]) {
      for (const int64_t bytes : {weight.Bytes(element_bytes), weight.ScaleBytes()}) {
        apart += AllocatedBytes(bytes);
        group += (bytes + kAlignment - 1) / kAlignment * kAlignment;
      }
    }
    const int64_t allocated = AllocatedBytes(group);
    together += allocated;
    if (i == 0) footprint.base_bytes = static_cast<uint64_t>(allocated);
    if (i > 0) largest = std::max(largest, allocated);
  }
  // After loading, each tensor has memory of its own. After a copy back from the host, each group
  // is one block.
  footprint.bytes = static_cast<uint64_t>(std::max(apart, together));
  footprint.group_bytes = static_cast<uint64_t>(largest);
  return footprint;
}

}  // namespace wan
