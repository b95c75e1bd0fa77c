// Computes the device memory that merging LoRAs into an expert's weights takes.
#pragma once

#include <cstdint>
#include <span>

#include "engine/checkpoint/lora_file.h"

namespace wan {

// The sizes that decide how much memory merging a LoRA into one transformer takes, each for its
// largest term.
struct LoraFootprint {
  int64_t factor_elements = 0;  // elements of both factors of a term
  int64_t factor_bytes = 0;     // bytes of both factors in the file's dtype
  int64_t part_elements =
      0;  // elements of a changed tensor, or of the part that is changed at a time
  int64_t difference_bytes = 0;  // bytes of that part of an addition, in the file's dtype
};
LoraFootprint FootprintOf(const LoraFile& file);

// Returns the device memory, in bytes, that WeightPatch::Apply (engine/weights/lora_patch.cc) needs
// for these LoRAs together; 0 if there are none. It is freed after each group of weights: no LoRA
// stays on the device.
uint64_t LoraMergingBytes(std::span<const LoraFootprint> loras);

}  // namespace wan
