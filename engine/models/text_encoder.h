// From the ids of a prompt to the hidden states that condition the transformer.
//
//   absl::StatusOr<std::unique_ptr<TextEncoder>> encoder = LoadUmt5(weights, config, options);
//   absl::StatusOr<at::Tensor> states = (*encoder)->Encode(ids);
//
// What LibTorch throws (c10::Error, out of device memory included) passes through; the runtime
// turns it into a status.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>

#include "absl/status/statusor.h"
#include "engine/checkpoint/model_config.h"
#include "engine/device/work_gate.h"

namespace wan {

// One call at a time.
class TextEncoder {
 public:
  virtual ~TextEncoder() = default;

  virtual const TextEncoderConfig& config() const = 0;

  // `ids` are the tokens of one text, end mark included, without padding. Gives [ids.size(), dim]
  // in the model's dtype on its device. Rows do not depend on padding, so none is added: upstream
  // pads to 512 ids, masks them and drops their rows.
  //
  // INVALID_ARGUMENT for no ids, or one outside [0, vocab_size). CANCELLED after a stop request,
  // for which `gate` is passed after every layer.
  virtual absl::StatusOr<at::Tensor> Encode(std::span<const int64_t> ids,
                                            const WorkGate& gate = {}) = 0;

  // Device memory of the weights.
  virtual int64_t WeightBytes() const = 0;
};

}  // namespace wan
