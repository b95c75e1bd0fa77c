// Loads a model's checkpoint into memory.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/api/engine.h"
#include "engine/pipeline/pipeline_model.h"
#include "engine/runtime/load_options.h"

namespace wan {

// A model in memory, and its description.
struct LoadedModel {
  PipelineModel pipeline;
  ModelDescription description;

  // The weights of each component, in the order of pipeline.planned.components; null for a
  // component that computes on the CPU.
  std::vector<std::shared_ptr<ComponentWeights>> weights;
};

// Reads and checks the files of a model and of its LoRAs, but no weights. Any thread may call the
// function.
absl::Status CheckModelFiles(const ModelSpec& spec);

// Loads all components of the model. An error names file and tensor; after it, nothing of the model
// is left in memory. Call the function on the thread that computes.
absl::StatusOr<std::shared_ptr<LoadedModel>> LoadModelFromCheckpoint(const ModelSpec& spec,
                                                                     const LoadOptions& options);

}  // namespace wan
