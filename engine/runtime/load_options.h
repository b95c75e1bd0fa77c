// Options for loading a model.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "engine/api/engine_options.h"
#include "engine/api/recorder.h"
#include "engine/device/device_graph.h"
#include "engine/runtime/device_counters.h"

namespace wan {

struct LoadOptions {
  EngineOptions engine = {};  // the operator's settings
  at::Device device = at::kCPU;
  // The other devices of a group, of the same type. Each computes with the transformers; everything
  // else is on `device`. Entries may be equal.
  std::vector<at::Device> peers = {};
  // Compute dtype of transformers and text encoder.
  at::ScalarType dtype = at::kFloat;
  // Most bytes of device memory for the weights plus a job of the model's default shape; 0: no
  // limit. It decides whether kAuto weights are loaded to the device or to host memory.
  uint64_t device_memory_bytes = 0;
  // Bytes of host memory that the process may still use; 0: unknown, and nothing is refused. Models
  // that need more are not loaded.
  uint64_t host_memory_bytes = 0;
  // A stop request ends the loading with CANCELLED.
  std::stop_token stop = {};
  // Records forwards of small videos; null: no recording.
  std::shared_ptr<DeviceGraphRecorder> graphs = nullptr;
  // Counters of `device`.
  DeviceCounters counters = {};
  // Counters of each peer, in the order of `peers`; empty: not counted.
  std::vector<DeviceCounters> peer_counters = {};
  // Gets each component as a part with its bytes, and the parts "checkpoint", "tokenizer" and
  // "loras"; may be null.
  Span* span = nullptr;
};

// Returns "fp32" or "bf16".
inline std::string DTypeLabel(at::ScalarType dtype) {
  return dtype == at::kBFloat16 ? "bf16" : "fp32";
}

}  // namespace wan
