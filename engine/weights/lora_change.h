// Computes what LoRAs, LoHas, LoKrs and DoRAs change in a matrix, some of its rows at a time.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "engine/weights/lora_weights.h"

namespace wan {

// A LoRA's term, with the scale that the request gives the LoRA.
struct LoraAddition {
  const LoraWeights::Term* term = nullptr;
  double scale = 1;  // the request's scale, which is not 0
};

// Returns rows of the unpatched matrix W in fp32. The caller owns the result.
using BaseRows = std::function<at::Tensor(int64_t first, int64_t count)>;

// The sum of several additions to one matrix [rows, columns]. The object holds all factors in fp32
// on the device; LoraMergingBytes (engine/planning/lora_memory.h) counts this memory.
class LoraChange {
 public:
  // Copies the factors to `device`. The additions' terms must outlive the object. If columns have
  // magnitudes, calls `base` for all rows, `step` at a time.
  LoraChange(std::span<const LoraAddition> additions, int64_t rows, int64_t step,
             const at::Device& device, const BaseRows& base);

  // Adds to `rows` (fp32, the base's rows from `first` on) the changes of all additions:
  //   scale * factor * D for each without magnitudes, and
  //   scale * (m * V / |V| - W) with V = W + factor * D for each DoRA.
  void AddTo(const at::Tensor& rows, int64_t first) const;

 private:
  // A matrix on the device, in fp32. A difference stays on the host; AddTo copies only the rows
  // that it adds.
  struct Matrix {
    at::Tensor up;
    at::Tensor down;
    at::Tensor whole;

    at::Tensor Rows(int64_t first, int64_t count) const;
    at::Tensor Rows(const at::Tensor& indices) const;
    int64_t size() const { return up.defined() ? up.size(0) : whole.size(0); }
  };
  struct Part {
    const LoraAddition* addition;
    Matrix first;
    Matrix second;
    at::Tensor lengths;  // if columns have magnitudes: the factor of each column, [1, columns]
  };

  static Matrix Upload(const LoraWeights::Matrix& matrix, const at::Device& device);
  // Adds the product of `times` and D to `rows`.
  static void AddTerm(const Part& part, double times, const at::Tensor& rows, int64_t first);
  // Replaces the magnitudes of columns by the factors for V's columns.
  static void MeasureColumns(Part& part, int64_t rows, int64_t step, const BaseRows& base);

  std::vector<Part> parts_;
};

}  // namespace wan
