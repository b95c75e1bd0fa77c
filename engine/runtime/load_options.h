// Options that apply when a model is loaded.
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
  EngineOptions engine = {};  // the settings that the operator chose
  at::Device device = at::kCPU;
  // The other devices of the group, of the same type as `device`. All devices compute with the
  // transformers; all other components are on `device`. Entries may be equal, as for CPU ranks.
  std::vector<at::Device> peers = {};
  // The compute dtype of transformers and text encoder.
  at::ScalarType dtype = at::kFloat;
  // Maximum device memory, in bytes, for the weights plus a job of the model's default shape; 0: no
  // limit. This limit decides whether weights with the policy kAuto are loaded to the device or to
  // host memory.
  uint64_t device_memory_bytes = 0;
  // Bytes of host memory that the process may still use; 0: unknown, and no model is refused. A
  // model that needs more is not loaded.
  uint64_t host_memory_bytes = 0;
  // A stop request ends the loading with CANCELLED.
  std::stop_token stop = {};
  // Records forwards of small videos; null: forwards are not recorded.
  std::shared_ptr<DeviceGraphRecorder> graphs = nullptr;
  // The counters for `device`.
  DeviceCounters counters = {};
  // The counters for each peer, in the order of `peers`; empty: nothing is counted.
  std::vector<DeviceCounters> peer_counters = {};
  // Receives each component as a part with its bytes, and the parts "checkpoint", "tokenizer" and
  // "loras"; may be null.
  Span* span = nullptr;
};

// Returns the dtype's name, "fp32" or "bf16".
inline std::string DTypeLabel(at::ScalarType dtype) {
  return dtype == at::kBFloat16 ? "bf16" : "fp32";
}

}  // namespace wan
