// Brings named tensors of a WeightSource onto a device in the dtype that a component computes in.
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

// Used while a component is built: Get() never fails on the spot, so that constructors read like a
// list of weights; the first problem is kept in status(), which the builder checks at the end.
//
// Every tensor is written once, into the memory it stays in, and entered into the component's
// ComponentWeights. On a device with memory of its own its values come later, while further ones
// are got: nobody may read them before Finish(), and who changes them does so by Change().
//
// If the weights keep their source, Finish() hands them what was done, so that they can be read
// again.
class WeightLoader {
 public:
  // One thing that was done to a group's tensors.
  using Step = std::function<void(WeightFiller&)>;

  // `source` must outlive the loader; the tensors do not depend on it. `weights` is where they are
  // entered; null makes one whose weights stay on the device. After a stop request status() is
  // CANCELLED, and nothing that takes time is done any more.
  WeightLoader(const WeightSource& source, at::Device device, at::ScalarType dtype,
               std::shared_ptr<ComponentWeights> weights = nullptr, std::stop_token stop = {});

  // The tensor in the loader's dtype. If it is absent or has another shape, status() says so
  // (naming tensor and file) and zeros of the expected shape are returned; after a stop request
  // the values are undefined.
  at::Tensor Get(std::string_view name, at::IntArrayRef expected_shape);
  at::Tensor Get(std::string_view name, at::IntArrayRef expected_shape, at::ScalarType dtype);
  // Several tensors of one shape, one behind the other along their first dimension.
  at::Tensor GetStacked(std::span<const std::string> names, at::IntArrayRef expected_shape,
                        at::ScalarType dtype);
  // The kernel of a convolution, with its values in the order of `layout`.
  at::Tensor GetKernel(std::string_view name, at::IntArrayRef expected_shape,
                       at::MemoryFormat layout);

  // `change` is made in place to what was got before, when its values have come.
  void Change(std::function<void()> change);

  // What is got from here on is of the next group of the component's weights.
  void BeginGroup();

  // Ends the building: what was got is complete, if status() is OK. For the component to keep.
  std::shared_ptr<ComponentWeights> Finish();

  // Bytes handed out so far.
  int64_t bytes() const { return bytes_; }

  const absl::Status& status() const { return status_; }

  at::Device device() const { return device_; }
  at::ScalarType dtype() const { return dtype_; }

 private:
  at::Tensor Allocate(at::IntArrayRef shape, at::ScalarType dtype,
                      at::MemoryFormat layout = at::MemoryFormat::Contiguous);
  // Writes the tensor `name` to `out`, whose shape is the expected one, and enters that name.
  void Fill(std::string_view name, const at::Tensor& out);
  // What was got is complete now.
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
