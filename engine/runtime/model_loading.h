// Loads a model's checkpoint into memory.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/api/engine.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/pipeline/pipeline_model.h"
#include "engine/runtime/load_options.h"
#include "engine/runtime/lora_loading.h"

namespace wan {

// A model in memory, and its description.
struct LoadedModel {
  PipelineModel pipeline;
  ModelDescription description;

  // The weights of each component, in the order of pipeline.planned.components; null for a
  // component that computes on the CPU.
  std::vector<std::shared_ptr<ComponentWeights>> weights;

  std::shared_ptr<const Checkpoint> checkpoint;
  std::shared_ptr<OpenedLoras> loras;
};

// Reads and checks the files of a model and of its LoRAs, but no weights. Any thread may call the
// function.
absl::Status CheckModelFiles(const ModelSpec& spec);

// Loads all components of the model. An error names file and tensor; after an error, nothing of the
// model is left in memory. Call the function on the thread that computes.
absl::StatusOr<std::shared_ptr<LoadedModel>> LoadModelFromCheckpoint(const ModelSpec& spec,
                                                                     const LoadOptions& options);

// Returns `model` with the LoRAs of `spec`. Both models share all components, so the function reads
// no weights, and only those LoRA files that `model` lacks. `model` stays as it is, also after an
// error. Returns the errors of OpenedLoras::Open, and FAILED_PRECONDITION (HOST_MEMORY_EXHAUSTED)
// if the host memory in `options` does not suffice. Throws what OpenedLoras::AddTo throws. Call the
// function on the thread that computes.
absl::StatusOr<std::shared_ptr<LoadedModel>> WithOtherLoras(const LoadedModel& model,
                                                            const ModelSpec& spec,
                                                            const LoadOptions& options);

}  // namespace wan
