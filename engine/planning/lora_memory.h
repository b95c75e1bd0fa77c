// Computes the device memory that merging LoRAs into an expert's weights takes.
#pragma once

#include <cstdint>
#include <span>

#include "engine/checkpoint/lora_file.h"

namespace wan {

// The sizes of a LoRA that decide how much memory merging it into one transformer takes. Each is
// that of its largest term.
struct LoraFootprint {
  int64_t factor_elements = 0;   // of both factors of a term
  int64_t factor_bytes = 0;      // the same in the file's dtype
  int64_t part_elements = 0;     // of a changed tensor; at most the part that is changed at a time
  int64_t difference_bytes = 0;  // the same part of a whole tensor's addition, in the file's dtype
};
LoraFootprint FootprintOf(const LoraFile& file);

// Returns the device memory, in bytes, that WeightPatch::Apply (engine/weights/lora_patch.cc) of
// these LoRAs together takes; 0 if there are none. It is freed after each group of weights: no part
// of a LoRA stays on the device.
uint64_t LoraMergingBytes(std::span<const LoraFootprint> loras);

}  // namespace wan
