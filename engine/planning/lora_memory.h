// The device memory that merging LoRAs into an expert's weights takes.
#pragma once

#include <cstdint>
#include <span>

#include "engine/checkpoint/lora_file.h"

namespace wan {

// The sizes that decide how much memory merging a LoRA into one transformer takes: the largest of
// its terms.
struct LoraFootprint {
  int64_t factor_elements = 0;   // of both factors of a term
  int64_t factor_bytes = 0;      // the same in the file's dtype
  int64_t part_elements = 0;     // of a changed tensor, as many as are changed at a time
  int64_t difference_bytes = 0;  // of a whole tensor's addition, as many, in the file's dtype
};
LoraFootprint FootprintOf(const LoraFile& file);

// WeightPatch::Apply (engine/weights/lora_patch.cc) of these LoRAs at once, in bytes; 0 for none.
// The memory is taken and given back while a group of weights is merged: nothing of a LoRA stays on
// the device.
uint64_t LoraMergingBytes(std::span<const LoraFootprint> loras);

}  // namespace wan
