// Computes the device memory that is needed for merging LoRAs into an expert's weights.
#pragma once

#include <cstdint>
#include <span>

#include "engine/checkpoint/lora_file.h"

namespace wan {

// The sizes that decide how much memory merging a LoRA into one transformer takes. Each member has
// the largest size of any term of the LoRA.
struct LoraFootprint {
  int64_t factor_elements = 0;   // elements of all factors of a term
  int64_t factor_bytes = 0;      // bytes of all factors in the file's dtype
  int64_t part_elements = 0;     // number of elements of a changed tensor that are changed at a
                                 // time
  int64_t difference_bytes = 0;  // bytes of the part of a difference that is added at a time
  int64_t scratch_elements = 0;  // number of elements of temporary results for that part
};
LoraFootprint FootprintOf(const LoraFile& file);

// Returns the device memory, in bytes, that WeightPatch::Apply (engine/weights/lora_patch.cc) needs
// for these LoRAs together; 0 if there are none. Apply frees this memory after each group of
// weights, so no LoRA stays on the device. Weights in 8 bits are read again in the compute dtype,
// with `read_again_bytes` per element; 0: the weights are not in 8 bits.
uint64_t LoraMergingBytes(std::span<const LoraFootprint> loras, int64_t read_again_bytes = 0);

}  // namespace wan
