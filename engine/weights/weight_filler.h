// Copies tensors of a WeightSource into the memory in which a component keeps them: when the
// component is loaded, and whenever its weights are read again.
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
#include "engine/ops/rounding.h"
#include "engine/weights/staged_upload.h"
#include "engine/weights/weight_mover.h"

namespace wan {

at::ScalarType ToScalarType(DType dtype);

// Not thread-safe. On a GPU values arrive asynchronously. Read them only after Settle(), and change
// them only with Change(). Files are read with system calls, not through their mapping. So a
// truncated file gives DATA_LOSS, whereas a mapping would raise SIGBUS.
//
// A synthetic source has no stored bytes. The tensors of a synthetic source are filled on the
// device with random numbers (matrices are scaled by 1/sqrt(fan in)) or, for norm weights, with
// ones. The numbers depend only on the tensor's name and shape, on the source's seed and on the
// kind of device. On a CPU the numbers of very large tensors repeat.
class WeightFiller {
 public:
  // `source` and `mover` must outlive this object. After a stop request status() is CANCELLED, and
  // every call returns at once.
  WeightFiller(const WeightSource& source, WeightMover& mover, std::stop_token stop,
               const UploadSettings& upload_settings = UploadSettings());

  // Copies the source's tensor `info` to `out`, which must have the tensor's shape. After a failure
  // the call does nothing.
  void Fill(const TensorInfo& info, const at::Tensor& out);

  // Writes rows of the source's matrix `info`, from row `first` on, until `out` is full.
  void FillRows(const TensorInfo& info, int64_t first, const at::Tensor& out);

  // Writes the source's matrix `info` to `out`. If the file has the matrix as codes of out's dtype
  // with a scale for each row, or one scale for all rows, `out` gets these codes and scales.
  // Otherwise converts the matrix to `dtype`, a few rows at a time, and rounds it. The result has
  // the same bits as filling a matrix in `dtype` and rounding that.
  void FillRounded(const TensorInfo& info, at::ScalarType dtype, const RoundedRows& out);

  // Calls `change` once the values of all tensors that were filled before have arrived. `change`
  // modifies some of these values in place.
  void Change(std::function<void()> change);

  // Waits until all values have arrived and all changes are made, or until a failure.
  void Settle();

  // Returns the first error, or OK.
  const absl::Status& status() const { return status_; }

 private:
  // Copies codes with the scales of their rows to `out`. Returns false, and copies nothing, if the
  // file does not have the matrix as such codes.
  bool CopyCodes(const TensorInfo& info, const RoundedRows& out);
  // Writes `bytes`, which hold a tensor of out's shape in the dtype `stored`, to `out`.
  void Write(TensorBytes bytes, at::ScalarType stored, const at::Tensor& out);
  void Upload(TensorBytes bytes, at::ScalarType stored, const at::Tensor& out);
  // Counts device memory that the next Settle() frees, and calls Settle() if there is too much of
  // it.
  void Stage(const at::Tensor& waiting);
  void MakeSynthetic(const TensorInfo& info, const at::Tensor& out) const;

  const WeightSource& source_;
  WeightMover& mover_;
  const std::stop_token stop_;
  const UploadSettings upload_settings_;
  std::unique_ptr<StagedUpload> upload_;  // null if the device is the host
  std::optional<std::stop_callback<std::function<void()>>> stop_upload_;
  // The work to do once the pending bytes have arrived; it owns the memory that it uses.
  std::vector<std::function<void()>> changes_;
  int64_t staged_bytes_ = 0;
  absl::Status status_;
};

}  // namespace wan
