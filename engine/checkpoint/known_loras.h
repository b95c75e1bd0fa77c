// Recognises published few-step LoRAs, which need a schedule of their own.
#pragma once

#include <optional>

#include "engine/api/lora.h"
#include "engine/checkpoint/lora_file.h"
#include "engine/checkpoint/model_config.h"

namespace wan {

// Returns the schedule of a 4-step LoRA of Wan2.2-Lightning or LightX2V for one of a model's two
// experts; nullopt for any other file. Two things must identify the LoRA. One of the file's names
// contains "lightning", "lightx2v", "seko" or "A14B-4steps-lora", and "4step" or "step_distill".
// And the file changes all linear layers of all blocks, with matrices of the rank that the name
// states.
std::optional<LoraSchedule> RecogniseSchedule(const LoraFile& file,
                                              const TransformerConfig& config);

}  // namespace wan
