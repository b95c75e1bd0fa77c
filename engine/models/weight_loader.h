// Brings named tensors of a WeightSource onto a device in the dtype that a component computes in.
#pragma once

#include <ATen/core/Tensor.h>

#include <string_view>

#include "absl/status/status.h"
#include "engine/checkpoint/weight_source.h"

namespace wan {

at::ScalarType ToScalarType(DType dtype);

// Used while a component is built: Get() never fails on the spot, so that constructors read like a
// list of weights; the first problem is kept in status(), which the builder checks at the end.
//
// A synthetic source has no bytes: its tensors are filled on the device with numbers that depend on
// nothing but the tensor's name and shape and the source's seed (matrices scaled by 1/sqrt(fan in),
// norm weights 1).
class WeightLoader {
 public:
  // `source` must outlive the loader; the tensors do not depend on it.
  WeightLoader(const WeightSource& source, at::Device device, at::ScalarType dtype);

  // The tensor in the loader's dtype. If it is absent or has another shape, status() says so
  // (naming tensor and file) and zeros of the expected shape are returned.
  at::Tensor Get(std::string_view name, at::IntArrayRef expected_shape);
  at::Tensor Get(std::string_view name, at::IntArrayRef expected_shape, at::ScalarType dtype);

  // Bytes handed out so far.
  int64_t bytes() const { return bytes_; }

  const absl::Status& status() const { return status_; }

  at::Device device() const { return device_; }
  at::ScalarType dtype() const { return dtype_; }

 private:
  at::Tensor Read(const TensorInfo& info, at::ScalarType dtype);
  at::Tensor MakeSynthetic(const TensorInfo& info, at::ScalarType dtype) const;

  const WeightSource& source_;
  const at::Device device_;
  const at::ScalarType dtype_;
  int64_t bytes_ = 0;
  absl::Status status_;
};

}  // namespace wan
