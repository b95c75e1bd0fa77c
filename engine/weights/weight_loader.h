// Loads named tensors of a WeightSource onto a device, in the component's compute dtype.
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

// The loader is used only while a component is built. Get() always returns a tensor, so
// constructors need no error handling. status() keeps the first error; whoever builds the component
// checks it at the end. Not thread-safe.
//
// Every tensor is written only once, into its final memory, and registered with the component's
// ComponentWeights. On a GPU values arrive asynchronously. Read them only after Finish(), and
// change them only with Change().
//
// If the ComponentWeights keep their source, Finish() gives them a reader that repeats the loading.
// Then the weights can be dropped.
class WeightLoader {
 public:
  // One step of loading a group, recorded so that it can be repeated.
  using Step = std::function<void(WeightFiller&)>;

  // `source` must outlive the loader, but need not outlive the tensors. The tensors are registered
  // with `weights` or, if that is null, with new ComponentWeights that stay on the device. After a
  // stop request status() is CANCELLED, and every call returns at once.
  WeightLoader(const WeightSource& source, at::Device device, at::ScalarType dtype,
               std::shared_ptr<ComponentWeights> weights = nullptr, std::stop_token stop = {});

  // Returns the tensor `name`, in the loader's dtype or in `dtype`. If the tensor is missing or has
  // another shape, returns zeros of the expected shape, and status() names the tensor and the file.
  // After a stop request the values are undefined.
  at::Tensor Get(std::string_view name, at::IntArrayRef expected_shape);
  at::Tensor Get(std::string_view name, at::IntArrayRef expected_shape, at::ScalarType dtype);
  // Loads several tensors of the same shape and returns them joined along the first dimension.
  at::Tensor GetStacked(std::span<const std::string> names, at::IntArrayRef expected_shape,
                        at::ScalarType dtype);
  // Loads the kernel of a convolution, and returns it with its values in the memory order of
  // `layout`.
  at::Tensor GetKernel(std::string_view name, at::IntArrayRef expected_shape,
                       at::MemoryFormat layout);

  // Load matrices in 8 bits, as codes of dtype `code` (WeightFiller::FillRounded). The codes are
  // the file's, or are rounded from the loader's dtype. In all other respects the functions work as
  // Get() and GetStacked().
  RoundedRows GetRounded(std::string_view name, at::IntArrayRef expected_shape,
                         at::ScalarType code = at::kFloat8_e4m3fn);
  RoundedRows GetRoundedStacked(std::span<const std::string> names, at::IntArrayRef expected_shape,
                                at::ScalarType code = at::kFloat8_e4m3fn);

  // Calls `change` once the values of all tensors that were loaded before have arrived. `change`
  // modifies some of these values in place.
  void Change(std::function<void()> change);

  // Begins the next group of the component's weights; tensors loaded after this belong to it.
  void BeginGroup();

  // Ends the loading; no other call may follow. Waits until the values have arrived, and returns
  // the component's weights. All values are complete if status() is OK.
  std::shared_ptr<ComponentWeights> Finish();

  // Returns the bytes of all tensors loaded so far.
  int64_t bytes() const { return bytes_; }

  const absl::Status& status() const { return status_; }

  at::Device device() const { return device_; }
  at::ScalarType dtype() const { return dtype_; }

 private:
  at::Tensor Allocate(at::IntArrayRef shape, at::ScalarType dtype,
                      at::MemoryFormat layout = at::MemoryFormat::Contiguous);
  // Copies the tensor `name` to `out`, which has the expected shape, and records that the name was
  // loaded.
  void Fill(std::string_view name, const at::Tensor& out);
  void Fill(std::string_view name, const RoundedRows& out);
  // Calls `write` with the tensor `name`, and records it as a step. Returns false after a failure,
  // also if the tensor does not have the expected shape.
  bool Run(std::string_view name, at::IntArrayRef expected_shape,
           std::function<void(WeightFiller&, const TensorInfo&)> write);
  // Waits until all tensors loaded so far are complete.
  void Settle();

  const WeightSource& source_;
  const at::Device device_;
  const at::ScalarType dtype_;
  const std::shared_ptr<ComponentWeights> weights_;
  const std::stop_token stop_;
  std::optional<WeightFiller> filler_;    // unset after Finish()
  std::vector<std::vector<Step>> steps_;  // the steps of each group
  int64_t bytes_ = 0;
  absl::Status status_;
};

}  // namespace wan
