// A LoRA in memory, ready to be merged into the weights of a transformer.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "engine/checkpoint/lora_file.h"
#include "engine/weights/weight_mover.h"

namespace wan {

class LoraWeights {
 public:
  // A matrix of a term (LoraMatrix): either `whole`, or up * down; unused members are undefined.
  struct Matrix {
    at::Tensor up;     // shape [rows, rank]
    at::Tensor down;   // shape [rank, columns]
    at::Tensor whole;  // shape [rows, columns]
  };
  // A change of the tensor `target`, as LoraTerm describes it. All matrices are in host memory and
  // have the file's dtypes.
  struct Term {
    std::string target;
    LoraForm form = LoraForm::kOne;
    Matrix first;
    Matrix second;
    LoraMagnitude magnitude = LoraMagnitude::kNone;
    at::Tensor lengths;  // DoRA's magnitudes, shape [elements]
    double factor = 1;
  };

  // Copies the file's tensors into host memory from which the mover's device can copy fast. `file`
  // and `mover` are not needed afterwards. Throws c10::OutOfMemoryError if host memory runs out.
  // After a stop request throws StatusException (CANCELLED) before it copies the next tensor.
  static std::shared_ptr<const LoraWeights> Load(const LoraFile& file, WeightMover& mover,
                                                 const std::stop_token& stop = {});

  const std::vector<Term>& terms() const { return terms_; }
  // Returns the largest rank of a term; 0 if all its matrices are whole.
  int64_t rank() const { return rank_; }
  // Returns the host memory of the matrices, in bytes.
  int64_t bytes() const { return static_cast<int64_t>(memory_.nbytes()); }

 private:
  LoraWeights() = default;

  at::Tensor memory_;
  std::vector<Term> terms_;
  int64_t rank_ = 0;
};

}  // namespace wan
