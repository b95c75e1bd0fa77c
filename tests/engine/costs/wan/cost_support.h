// What the tests of the components' descriptions share.
#pragma once

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/checkpoint/expected_tensors.h"
#include "engine/checkpoint/weight_source.h"
#include "engine/costs/weight_groups.h"
#include "engine/weights/component_weights.h"

namespace wan {

// Tensors that have names and shapes, but no bytes: the loader fills them.
class SyntheticWeights final : public WeightSource {
 public:
  explicit SyntheticWeights(const std::vector<TensorSpec>& tensors) {
    for (const TensorSpec& tensor : tensors) {
      const auto elements = static_cast<uint64_t>(ElementCount(tensor.shape).value());
      infos_.push_back({.name = tensor.name,
                        .dtype = DType::kFloat32,
                        .shape = tensor.shape,
                        .bytes = 4 * elements});
    }
    std::sort(infos_.begin(), infos_.end(),
              [](const TensorInfo& a, const TensorInfo& b) { return a.name < b.name; });
  }

  const std::vector<TensorInfo>& Tensors() const override { return infos_; }
  const TensorInfo* Find(std::string_view name) const override {
    const auto found = std::find_if(infos_.begin(), infos_.end(),
                                    [&](const TensorInfo& info) { return info.name == name; });
    return found == infos_.end() ? nullptr : &*found;
  }
  absl::StatusOr<TensorBytes> Read(const TensorInfo&) const override {
    return absl::FailedPreconditionError("synthetic");
  }
  bool IsSynthetic() const override { return true; }

 private:
  std::vector<TensorInfo> infos_;
};

inline std::shared_ptr<ComponentWeights> EmptyWeights() {
  return std::make_shared<ComponentWeights>(MakeWeightMover(at::kCPU),
                                            ComponentWeights::Home::kDevice);
}

// The loader has put every tensor where the description says: in its group, in its dtype, in one
// piece of memory with those that it is packed with, and nothing else.
inline void ExpectLoadedAsDescribed(const WeightGroups& described, const ComponentWeights& loaded,
                                    at::ScalarType dtype) {
  const auto element_bytes = static_cast<int64_t>(at::elementSize(dtype));
  for (size_t group = 0; group < described.groups().size(); ++group) {
    for (const PackedWeight& weight : described.groups()[group]) {
      for (const TensorSpec& tensor : weight.tensors) {
        SCOPED_TRACE(tensor.name);
        const std::optional<NamedWeight> found = loaded.Find(tensor.name);
        ASSERT_TRUE(found.has_value());
        EXPECT_EQ(found->group, group);
        const bool rounded = weight.dtype == WeightDtype::kRounded;
        ASSERT_EQ(found->rounded.defined(), rounded);
        const at::Tensor& memory = rounded ? found->rounded.codes : found->tensor;
        EXPECT_EQ(static_cast<int64_t>(memory.storage().nbytes()), weight.Bytes(element_bytes));
        if (rounded) {
          EXPECT_EQ(static_cast<int64_t>(found->rounded.scales.storage().nbytes()),
                    weight.ScaleBytes());
          EXPECT_EQ(found->rounded_from, dtype);
        } else {
          EXPECT_EQ(memory.scalar_type(), weight.dtype == WeightDtype::kFp32 ? at::kFloat : dtype);
        }
      }
    }
  }
  const WeightSizes sizes = loaded.Sizes();
  const WeightFootprint footprint = described.Footprint(element_bytes);
  EXPECT_EQ(footprint.bytes, static_cast<uint64_t>(sizes.total));
  EXPECT_EQ(footprint.base_bytes, static_cast<uint64_t>(sizes.base));
  EXPECT_EQ(footprint.group_bytes, static_cast<uint64_t>(sizes.largest_group));
}

// What operators allocate for themselves depends on the number of threads.
class OneThread {
 public:
  OneThread() : threads_(at::get_num_threads()) { at::set_num_threads(1); }
  ~OneThread() { at::set_num_threads(threads_); }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  const int threads_;
};

// oneDNN's products in bf16 repack or convert their matrices, as much as the processor's
// instructions ask for. Without it LibTorch's own products run, which take nothing.
class WithoutOneDnn {
 public:
  WithoutOneDnn() : enabled_(at::globalContext().userEnabledMkldnn()) {
    at::globalContext().setUserEnabledMkldnn(false);
  }
  ~WithoutOneDnn() { at::globalContext().setUserEnabledMkldnn(enabled_); }
  WithoutOneDnn(const WithoutOneDnn&) = delete;
  WithoutOneDnn& operator=(const WithoutOneDnn&) = delete;

 private:
  const bool enabled_;
};

}  // namespace wan
