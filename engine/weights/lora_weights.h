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
  // A term to be added to the tensor `target`: factor * (up down), or factor * difference if up and
  // down are undefined. All matrices are in host memory and have the file's dtypes.
  struct Term {
    std::string target;
    at::Tensor up;          // shape [rows, rank]
    at::Tensor down;        // shape [rank, columns]
    at::Tensor difference;  // shape [rows, columns]
    double factor = 1;
  };

  // Copies the file's tensors into host memory from which the mover's device can copy fast. `file`
  // and `mover` are not needed afterwards. Throws c10::OutOfMemoryError if host memory runs out.
  // After a stop request throws StatusException (CANCELLED) before it copies the next tensor.
  static std::shared_ptr<const LoraWeights> Load(const LoraFile& file, WeightMover& mover,
                                                 const std::stop_token& stop = {});

  const std::vector<Term>& terms() const { return terms_; }
  // Returns the largest rank of a term; 0 if all terms are differences.
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
