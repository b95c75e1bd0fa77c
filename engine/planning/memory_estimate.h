// What each component holds of the device's memory while it computes, besides its weights: pure
// functions of dimensions and sizes, in bytes. They follow the components' code tensor by tensor
// (engine/models/wan), so a change there belongs here, too; scripts/gpu/check_memory compares them
// with what a GPU's allocator reports. docs/memory.md says how they are used.
#pragma once

#include <cstdint>

#include "engine/checkpoint/model_config.h"
#include "engine/planning/tile_geometry.h"

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

// VideoAutoencoder::Decode, what the frames' way to the host takes included.
uint64_t DecodingBytes(const VaeConfig& config, const LatentSize& size, int64_t element_bytes);

// VideoAutoencoder::Encode of the video that has latents of `size`.
uint64_t EncodingBytes(const VaeConfig& config, const LatentSize& size, int64_t element_bytes);

// Floating-point operations of one transformer forward for `tokens` video tokens, batch 1, without
// the text keys and values (computed once a job).
double TransformerForwardFlops(const TransformerConfig& config, int64_t tokens);

}  // namespace wan
