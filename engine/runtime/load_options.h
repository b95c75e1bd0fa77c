// How a model is loaded.
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
  EngineOptions engine = {};  // as the operator chose them
  at::Device device = at::kCPU;
  // The further devices of a group, of the same type: each computes with the transformers, and
  // everything else is on `device`. An entry may be the same as another.
  std::vector<at::Device> peers = {};
  // The dtype of transformer and text encoder.
  at::ScalarType dtype = at::kFloat;
  // Most device memory, in bytes, for the weights and a job of the model's default shape; 0: no
  // limit. It decides whether weights with the policy kAuto are loaded to the device or to host
  // memory.
  uint64_t device_memory_bytes = 0;
  // Host memory that the process may still take, in bytes; 0: unknown, and nothing is refused. A
  // model that needs more is not loaded.
  uint64_t host_memory_bytes = 0;
  // A stop request ends the loading with CANCELLED.
  std::stop_token stop = {};
  // Records forwards of small videos; null: every forward launches its kernels.
  std::shared_ptr<DeviceGraphRecorder> graphs = nullptr;
  // Of `device`.
  DeviceCounters counters = {};
  // Counters of each peer, in the order of `peers`; empty: not counted.
  std::vector<DeviceCounters> peer_counters = {};
  // Gets each component as a part, with its bytes, and "checkpoint", "tokenizer" and "loras"; may
  // be null.
  Span* span = nullptr;
};

// Returns "fp32" or "bf16".
inline std::string DTypeLabel(at::ScalarType dtype) {
  return dtype == at::kBFloat16 ? "bf16" : "fp32";
}

}  // namespace wan
