// From a checkpoint on disk to a resident model.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/api/engine.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/pipeline/video_pipeline.h"

namespace wan {

// A model in memory and what it says of itself.
struct LoadedModel {
  PipelineModel pipeline;
  ModelDescription description;
};

struct LoadOptions {
  at::Device device = at::kCPU;
  // Of transformer and text encoder; the VAE computes in fp32, as upstream (in TF32 where `dtype`
  // is not fp32).
  at::ScalarType dtype = at::kFloat;
};

// Errors name file and tensor.
absl::StatusOr<std::shared_ptr<LoadedModel>> LoadModelFromCheckpoint(const ModelSpec& spec,
                                                                     const LoadOptions& options);

// "fp32", "bf16".
std::string DTypeLabel(at::ScalarType dtype);

}  // namespace wan
