// Loads a checkpoint into memory.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/api/engine.h"
#include "engine/api/guidance_batching.h"
#include "engine/api/h264.h"
#include "engine/api/recorder.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/device/device_graph.h"
#include "engine/pipeline/pipeline_model.h"
#include "engine/runtime/device_counters.h"

namespace wan {

// A model in memory and its description.
struct LoadedModel {
  PipelineModel pipeline;
  ModelDescription description;

  // The weights of each component, in the order of pipeline.planned.components; null for a
  // component whose policy is to compute on the CPU.
  std::vector<std::shared_ptr<ComponentWeights>> weights;
};

struct LoadOptions {
  at::Device device = at::kCPU;
  // The further devices of a group, of the same type: each computes with the transformers, and
  // everything else is on `device`. An entry may be the same as another.
  std::vector<at::Device> peers = {};
  // The dtype of transformer and text encoder.
  at::ScalarType dtype = at::kFloat;
  // As configured. A component that is not named has the policy kAuto.
  std::vector<ComponentResidency> residency;
  // Most device memory, in bytes, for the weights and a job of the model's default shape; 0: no
  // limit. It decides whether weights with the policy kAuto are loaded to the device or to host
  // memory.
  uint64_t device_memory_bytes = 0;
  // Host memory that the process may still take, in bytes; 0: unknown, and nothing is refused. A
  // model that needs more is not loaded.
  uint64_t host_memory_bytes = 0;
  // A stop request ends the loading with CANCELLED.
  std::stop_token stop = {};
  // The VAE's where a request does not state one.
  VaePrecision vae_precision = VaePrecision::kFp32;
  // Records forwards of small videos; null: every forward launches its kernels.
  std::shared_ptr<DeviceGraphRecorder> graphs = nullptr;
  GuidanceBatching guidance_batching = GuidanceBatching::kAuto;
  H264Options h264;
  // Of `device`.
  DeviceCounters counters = {};
  // Of each peer, in the order of `peers`; empty: nobody asks.
  std::vector<DeviceCounters> peer_counters = {};
  // Gets each component as a part, with its bytes, and "checkpoint", "tokenizer" and "loras"; null:
  // nobody wants to know.
  Span* span = nullptr;
};

// Reads and checks the files of a model and of its LoRAs, but no weights. Any thread may call it.
absl::Status CheckModelFiles(const ModelSpec& spec);

// Loads all components. Errors name the file and the tensor; nothing stays in memory then. Call it
// on the thread that computes.
absl::StatusOr<std::shared_ptr<LoadedModel>> LoadModelFromCheckpoint(const ModelSpec& spec,
                                                                     const LoadOptions& options);

// Returns "fp32" or "bf16".
std::string DTypeLabel(at::ScalarType dtype);

}  // namespace wan
