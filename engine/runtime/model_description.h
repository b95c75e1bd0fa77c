// Describes a loaded model for the list of the engine's models.
#pragma once

#include <c10/core/Device.h>

#include <span>

#include "engine/api/engine.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/pipeline/pipeline_model.h"
#include "engine/runtime/load_options.h"
#include "engine/runtime/lora_loading.h"

namespace wan {

// `model` must have all its components. `devices` names each component's device, in the order of
// PlannedModel::components. The description lists the files of the checkpoint and of the LoRAs,
// sorted by name.
ModelDescription DescribeModel(const ModelSpec& spec, const Checkpoint& checkpoint,
                               const OpenedLoras& loras, const PipelineModel& model,
                               std::span<const c10::Device> devices, const LoadOptions& options);

// Sets the members of `description` that depend on the LoRAs.
void DescribeLoras(const Checkpoint& checkpoint, const OpenedLoras& loras,
                   ModelDescription& description);

}  // namespace wan
