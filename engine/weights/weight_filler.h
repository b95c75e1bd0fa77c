// Writes tensors of a WeightSource into the memory that a component keeps them in: when it is
// loaded, and each time that it is read again.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <vector>

#include "absl/status/status.h"
#include "engine/checkpoint/weight_source.h"
#include "engine/weights/staged_upload.h"
#include "engine/weights/weight_mover.h"

namespace wan {

at::ScalarType ToScalarType(DType dtype);

// For one thread. On a device with memory of its own the values come later, while further tensors
// are filled: nobody may read them before Settle(), and who changes them does so by Change().
// Files are read with system calls, never through their mapping: a file that has become shorter is
// DATA_LOSS and does not end the process.
//
// A synthetic source has no bytes: its tensors are filled on the device with numbers that depend on
// nothing but the tensor's name and shape and the source's seed (matrices scaled by 1/sqrt(fan in),
// norm weights 1).
class WeightFiller {
 public:
  // `source` and `mover` must outlive the object. After a stop request status() is CANCELLED, and
  // nothing that takes time is done any more.
  WeightFiller(const WeightSource& source, WeightMover& mover, std::stop_token stop);

  // Writes the tensor `info` of the source to `out`, which has its shape. After a failure it does
  // nothing.
  void Fill(const TensorInfo& info, const at::Tensor& out);

  // `change` is made in place to what was filled before, when its values have come.
  void Change(std::function<void()> change);

  // Waits until what was filled is complete, or the filling has failed.
  void Settle();

  // The first problem.
  const absl::Status& status() const { return status_; }

 private:
  void Upload(TensorBytes bytes, const TensorInfo& info, const at::Tensor& out);
  void MakeSynthetic(const TensorInfo& info, const at::Tensor& out) const;

  const WeightSource& source_;
  WeightMover& mover_;
  const std::stop_token stop_;
  std::unique_ptr<StagedUpload> upload_;  // for devices with memory of their own
  std::optional<std::stop_callback<std::function<void()>>> stop_upload_;
  // What is to be done when the bytes on their way have come, and the memory that it holds.
  std::vector<std::function<void()>> changes_;
  int64_t staged_bytes_ = 0;
  absl::Status status_;
};

}  // namespace wan
