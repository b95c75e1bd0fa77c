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
#include "engine/weights/staged_upload.h"

namespace wan {

at::ScalarType ToScalarType(DType dtype);

// Used while a component is built: Get() never fails on the spot, so that constructors read like a
// list of weights; the first problem is kept in status(), which the builder checks at the end.
//
// Every tensor is written once, into the memory it stays in, and entered into the component's
// ComponentWeights. On a device with memory of its own its values come later, while further ones
// are got: nobody may read them before Finish(), and who changes them does so by Change().
//
// A synthetic source has no bytes: its tensors are filled on the device with numbers that depend on
// nothing but the tensor's name and shape and the source's seed (matrices scaled by 1/sqrt(fan in),
// norm weights 1).
class WeightLoader {
 public:
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
  void Read(const TensorInfo& info, const at::Tensor& out);
  void Upload(TensorBytes bytes, const TensorInfo& info, const at::Tensor& out);
  // What was got is complete now.
  void Settle();
  void MakeSynthetic(const TensorInfo& info, const at::Tensor& out) const;

  const WeightSource& source_;
  const at::Device device_;
  const at::ScalarType dtype_;
  const std::shared_ptr<ComponentWeights> weights_;
  const std::stop_token stop_;
  std::unique_ptr<StagedUpload> upload_;  // for devices with memory of their own
  std::optional<std::stop_callback<std::function<void()>>> stop_upload_;
  // What is to be done when the bytes on their way have come, and the memory that it holds.
  std::vector<std::function<void()>> changes_;
  int64_t staged_bytes_ = 0;
  int64_t bytes_ = 0;
  absl::Status status_;
};

}  // namespace wan
