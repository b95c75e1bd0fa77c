// Computes the hidden states of a prompt, which condition the transformer.
//
//   absl::StatusOr<std::unique_ptr<TextEncoder>> encoder = LoadUmt5(weights, config, options);
//   absl::StatusOr<at::Tensor> states = (*encoder)->Encode(ids);
//
// Exceptions of LibTorch (c10::Error, also when device memory runs out) pass through; the runtime
// turns them into statuses.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>

#include "absl/status/statusor.h"
#include "engine/checkpoint/model_config.h"
#include "engine/device/work_gate.h"

namespace wan {

// Not thread-safe: one call at a time.
class TextEncoder {
 public:
  virtual ~TextEncoder() = default;

  virtual const TextEncoderConfig& config() const = 0;

  // Returns the hidden states [ids.size(), dim] in the model's dtype on its device. `ids` are the
  // tokens of one text, including the end mark but no padding. Upstream pads to 512 tokens, masks
  // the padding and drops its rows; the remaining rows are equal to this function's result.
  //
  // INVALID_ARGUMENT if there are no ids, or if an id is outside [0, vocab_size). CANCELLED after a
  // stop request, because every layer passes `gate`.
  virtual absl::StatusOr<at::Tensor> Encode(std::span<const int64_t> ids,
                                            const WorkGate& gate = {}) = 0;

  // Returns the device memory of the weights, in bytes.
  virtual int64_t WeightBytes() const = 0;
};

}  // namespace wan
