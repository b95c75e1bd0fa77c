// What each component holds of the device's memory while it computes, besides its weights: pure
// functions of dimensions and sizes, in bytes. They follow the components' code tensor by tensor
// (engine/models/wan), so a change there belongs here, too; scripts/gpu/check_memory compares them
// with what a GPU's allocator reports. docs/memory.md says how they are used.
#pragma once

#include <cstdint>
#include <span>

#include "engine/checkpoint/lora_file.h"
#include "engine/checkpoint/model_config.h"

namespace wan {

// Of the matrix libraries: theirs from the first product on, and for good.
inline constexpr uint64_t kLibraryWorkspaceBytes = uint64_t{64} << 20;

// TextEncoder::Encode of `tokens` ids. `element_bytes` is the size of the compute dtype.
uint64_t TextEncodingBytes(const TextEncoderConfig& config, int64_t tokens, int64_t element_bytes);

// What TextConditioning holds for `texts` texts.
uint64_t TextConditioningBytes(const TransformerConfig& config, int64_t texts,
                               int64_t element_bytes);

// VideoTransformer::PrepareText of a batch, without its result.
uint64_t TextPreparationBytes(const TransformerConfig& config, int64_t batch,
                              int64_t element_bytes);

// VideoTransformer::Forward of `batch` videos of `tokens` tokens each, its result included.
uint64_t ForwardBytes(const TransformerConfig& config, int64_t tokens, int64_t batch,
                      int64_t element_bytes);

// What decides the memory that merging a LoRA into one transformer takes: the largest of its terms.
struct LoraFootprint {
  int64_t factor_elements = 0;   // of both factors of a term
  int64_t factor_bytes = 0;      // the same in the file's dtype
  int64_t part_elements = 0;     // of a changed tensor, as many as are changed at a time
  int64_t difference_bytes = 0;  // of a whole tensor's addition, as many, in the file's dtype
};
LoraFootprint FootprintOf(const LoraFile& file);

// WeightPatch::Apply (engine/weights/lora_patch.cc) of these LoRAs at once; 0 for none. It is taken
// and given back while a group of weights is merged: nothing of a LoRA stays on the device.
uint64_t LoraMergingBytes(std::span<const LoraFootprint> loras);

// Sizes of a video as the autoencoder's code counts them.
struct LatentSize {
  int64_t frames = 0;
  int64_t height = 0;
  int64_t width = 0;
};

// VideoAutoencoder::Decode, what the frames' way to the host takes included.
uint64_t DecodingBytes(const VaeConfig& config, const LatentSize& size, int64_t element_bytes);

// VideoAutoencoder::Encode of the video that has latents of `size`.
uint64_t EncodingBytes(const VaeConfig& config, const LatentSize& size, int64_t element_bytes);

}  // namespace wan
