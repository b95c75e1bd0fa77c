// From a checkpoint on disk to a resident model.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/api/engine.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/pipeline/pipeline_model.h"

namespace wan {

// A model in memory and what it says of itself.
struct LoadedModel {
  PipelineModel pipeline;
  ModelDescription description;

  // Of every component that may move, in the order of pipeline.planned.components; null for those
  // that compute on the CPU by their policy.
  std::vector<std::shared_ptr<ComponentWeights>> weights;
};

struct LoadOptions {
  at::Device device = at::kCPU;
  // Of transformer and text encoder; the VAE computes in fp32, as upstream (in TF32 where `dtype`
  // is not fp32).
  at::ScalarType dtype = at::kFloat;
  // As configured; what is not named is kAuto.
  std::vector<ComponentResidency> residency;
  // What the weights and a job of the model's default shape may hold of the device, in bytes; where
  // weights are kAuto it decides whether they are loaded to the device or to host memory. 0: no
  // limit.
  uint64_t device_memory_bytes = 0;
  // Ends the loading with CANCELLED.
  std::stop_token stop = {};
};

// Errors name file and tensor.
absl::StatusOr<std::shared_ptr<LoadedModel>> LoadModelFromCheckpoint(const ModelSpec& spec,
                                                                     const LoadOptions& options);

// "fp32", "bf16".
std::string DTypeLabel(at::ScalarType dtype);

}  // namespace wan
