#include "engine/weights/lora_change.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <limits>

namespace wan {
namespace {

// Keeps rows and columns of zeros from becoming NaN; LyCORIS adds the same number.
constexpr double kLeastLength = std::numeric_limits<float>::epsilon();

// Copies to the device and converts to fp32 there, which is faster than on the host.
at::Tensor ToDevice(const at::Tensor& host, const at::Device& device) {
  return host.to(device, /*non_blocking=*/true).to(at::kFloat);
}

}  // namespace

at::Tensor LoraChange::Matrix::Rows(int64_t first, int64_t count) const {
  return up.defined() ? up.narrow(0, first, count).matmul(down) : whole.narrow(0, first, count);
}

at::Tensor LoraChange::Matrix::Rows(const at::Tensor& indices) const {
  return up.defined() ? up.index_select(0, indices).matmul(down) : whole.index_select(0, indices);
}

LoraChange::Matrix LoraChange::Upload(const LoraWeights::Matrix& matrix, const at::Device& device) {
  Matrix uploaded;
  if (matrix.up.defined()) {
    uploaded.up = ToDevice(matrix.up, device);
    uploaded.down = ToDevice(matrix.down, device);
  } else if (matrix.whole.defined()) {
    uploaded.whole = ToDevice(matrix.whole, device);
  }
  return uploaded;
}

LoraChange::LoraChange(std::span<const LoraAddition> additions, int64_t rows, int64_t step,
                       const at::Device& device, const BaseRows& base) {
  for (const LoraAddition& addition : additions) {
    const LoraWeights::Term& term = *addition.term;
    Part& part = parts_.emplace_back(Part{.addition = &addition});
    if (term.form == LoraForm::kOne && term.first.whole.defined()) {
      part.first.whole = term.first.whole;
    } else {
      part.first = Upload(term.first, device);
      part.second = Upload(term.second, device);
    }
    if (term.magnitude == LoraMagnitude::kNone) continue;
    part.lengths = ToDevice(term.lengths, device);
    if (term.magnitude == LoraMagnitude::kOfColumns) MeasureColumns(part, rows, step, base);
  }
}

void LoraChange::AddTerm(const Part& part, double times, const at::Tensor& rows, int64_t first) {
  const int64_t count = rows.size(0);
  switch (part.addition->term->form) {
    case LoraForm::kOne:
      if (part.first.up.defined()) {
        rows.addmm_(part.first.up.narrow(0, first, count), part.first.down, 1, times);
      } else {
        rows.add_(ToDevice(part.first.Rows(first, count), rows.device()), times);
      }
      return;
    case LoraForm::kHadamard:
      rows.addcmul_(part.first.Rows(first, count), part.second.Rows(first, count), times);
      return;
    case LoraForm::kKronecker: {
      // Row i of the product comes from row i / n of the left side and row i % n of the right side.
      const int64_t height = part.second.size();
      const at::Tensor indices =
          at::arange(first, first + count, at::TensorOptions(at::kLong).device(rows.device()));
      const at::Tensor left = part.first.Rows(indices.floor_divide(height));
      const at::Tensor right = part.second.Rows(indices.remainder(height));
      rows.view({count, left.size(1), right.size(1)})
          .addcmul_(left.unsqueeze(2), right.unsqueeze(1), times);
      return;
    }
  }
}

void LoraChange::MeasureColumns(Part& part, int64_t rows, int64_t step, const BaseRows& base) {
  const double factor = part.addition->term->factor;
  at::Tensor squares;
  for (int64_t first = 0; first < rows; first += step) {
    const at::Tensor changed = base(first, std::min(step, rows - first));
    AddTerm(part, factor, changed, first);
    const at::Tensor lengths = at::linalg_vector_norm(changed, 2, at::IntArrayRef{0});
    if (!squares.defined()) squares = at::zeros_like(lengths);
    squares.addcmul_(lengths, lengths);
  }
  // All columns that belong to one input channel of a convolution have one common length.
  const int64_t inputs = part.lengths.numel();
  const at::Tensor kernels = squares.view({inputs, -1});
  const at::Tensor lengths = kernels.sum(1, /*keepdim=*/true).sqrt_().add_(kLeastLength);
  part.lengths =
      part.lengths.view({inputs, 1}).div(lengths).expand_as(kernels).reshape({1, squares.numel()});
}

void LoraChange::AddTo(const at::Tensor& rows, int64_t first) const {
  const bool has_lengths = std::any_of(parts_.begin(), parts_.end(),
                                       [](const Part& part) { return part.lengths.defined(); });
  const at::Tensor base = has_lengths ? rows.clone() : at::Tensor();
  for (const Part& part : parts_) {
    const LoraWeights::Term& term = *part.addition->term;
    if (!part.lengths.defined()) {
      AddTerm(part, part.addition->scale * term.factor, rows, first);
      continue;
    }
    const at::Tensor changed = base.clone();
    AddTerm(part, term.factor, changed, first);
    if (term.magnitude == LoraMagnitude::kOfRows) {
      const at::Tensor lengths =
          at::linalg_vector_norm(changed, 2, at::IntArrayRef{1}, /*keepdim=*/true);
      const at::Tensor wanted = part.lengths.narrow(0, first, rows.size(0)).unsqueeze(1);
      changed.mul_(wanted.div(lengths.add_(kLeastLength)));
    } else {
      changed.mul_(part.lengths);
    }
    rows.add_(changed.sub_(base), part.addition->scale);
  }
}

}  // namespace wan
