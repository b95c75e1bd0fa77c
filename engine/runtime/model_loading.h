// Loads a checkpoint into memory.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/api/engine.h"
#include "engine/pipeline/pipeline_model.h"
#include "engine/runtime/load_options.h"

namespace wan {

// A model in memory and its description.
struct LoadedModel {
  PipelineModel pipeline;
  ModelDescription description;

  // The weights of each component, in the order of pipeline.planned.components; null for a
  // component that computes on the CPU.
  std::vector<std::shared_ptr<ComponentWeights>> weights;
};

// Reads and checks the files of a model and its LoRAs, except weights. Any thread may call it.
absl::Status CheckModelFiles(const ModelSpec& spec);

// Loads all components. Errors name file and tensor, and leave nothing in memory. Call it on the
// computing thread.
absl::StatusOr<std::shared_ptr<LoadedModel>> LoadModelFromCheckpoint(const ModelSpec& spec,
                                                                     const LoadOptions& options);

}  // namespace wan
