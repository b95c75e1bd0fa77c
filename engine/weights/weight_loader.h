// Loads named tensors of a WeightSource onto a device, in the dtype in which a component computes.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "engine/checkpoint/weight_source.h"
#include "engine/weights/component_weights.h"
#include "engine/weights/weight_filler.h"

namespace wan {

// Used while a component is built. Get() always returns a tensor, so that constructors read like a
// list of weights; the first error is kept in status(), which the builder checks at the end. Not
// thread-safe.
//
// Every tensor is written once, into the memory where it stays, and entered into the component's
// ComponentWeights. On a device with memory of its own the values arrive while further tensors are
// loaded: read them only after Finish(), and change them only through Change().
//
// If the ComponentWeights keep their source, Finish() gives them a record of what was done, so that
// the weights can be dropped and read again.
class WeightLoader {
 public:
  // One recorded step of loading a group.
  using Step = std::function<void(WeightFiller&)>;

  // `source` must outlive the loader, but not the tensors. They are entered into `weights`; null
  // makes a ComponentWeights whose weights stay on the device. After a stop request status() is
  // CANCELLED, and every call returns at once.
  WeightLoader(const WeightSource& source, at::Device device, at::ScalarType dtype,
               std::shared_ptr<ComponentWeights> weights = nullptr, std::stop_token stop = {});

  // Returns the tensor in the loader's dtype, or in `dtype`. If the tensor is missing or has
  // another shape, returns zeros of the expected shape, and status() names the tensor and the file.
  // After a stop request the values are undefined.
  at::Tensor Get(std::string_view name, at::IntArrayRef expected_shape);
  at::Tensor Get(std::string_view name, at::IntArrayRef expected_shape, at::ScalarType dtype);
  // Returns several tensors of one shape, joined along their first dimension.
  at::Tensor GetStacked(std::span<const std::string> names, at::IntArrayRef expected_shape,
                        at::ScalarType dtype);
  // Returns the kernel of a convolution, with its values in the memory order of `layout`.
  at::Tensor GetKernel(std::string_view name, at::IntArrayRef expected_shape,
                       at::MemoryFormat layout);

  // Calls `change`, which changes tensors that were loaded before in place, once their values have
  // arrived.
  void Change(std::function<void()> change);

  // Begins the next group of the component's weights; tensors loaded after this belong to it.
  void BeginGroup();

  // Call it last. Waits for the values, which are complete if status() is OK, and returns the
  // weights for the component to keep.
  std::shared_ptr<ComponentWeights> Finish();

  // Returns the bytes of all tensors so far.
  int64_t bytes() const { return bytes_; }

  const absl::Status& status() const { return status_; }

  at::Device device() const { return device_; }
  at::ScalarType dtype() const { return dtype_; }

 private:
  at::Tensor Allocate(at::IntArrayRef shape, at::ScalarType dtype,
                      at::MemoryFormat layout = at::MemoryFormat::Contiguous);
  // Writes the tensor `name` to `out`, which has the expected shape, and records the name.
  void Fill(std::string_view name, const at::Tensor& out);
  // All tensors so far are complete.
  void Settle();

  const WeightSource& source_;
  const at::Device device_;
  const at::ScalarType dtype_;
  const std::shared_ptr<ComponentWeights> weights_;
  const std::stop_token stop_;
  std::optional<WeightFiller> filler_;    // until the building ends
  std::vector<std::vector<Step>> steps_;  // by group
  int64_t bytes_ = 0;
  absl::Status status_;
};

}  // namespace wan
