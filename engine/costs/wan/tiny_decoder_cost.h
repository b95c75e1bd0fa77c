// What a tiny decoder costs, computed from its dimensions alone. The functions mirror
// engine/models/wan/tiny_decoder.cc tensor by tensor, so change both together;
// tests/engine/costs/wan/tiny_decoder_cost_test.cc compares them with what the code allocates.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/api/vae_precision.h"
#include "engine/checkpoint/model_config.h"
#include "engine/costs/latent_size.h"

namespace wan {

// Returns the device memory, in bytes, that decoding needs with a tiny decoder, including the
// 16-bit copies of weights that the pass makes and the download of frames to the host.
uint64_t TinyDecodingBytes(const TinyDecoderConfig& config, const LatentSize& size,
                           VaePrecision precision);

// Returns the floating-point operations of stage `stage` for one latent frame of `height` x
// `width`.
double TinyStageFlops(const TinyDecoderConfig& config, size_t stage, int64_t height, int64_t width);

// Returns the floating-point operations of decoding a whole video.
double TinyDecodingFlops(const TinyDecoderConfig& config, const LatentSize& size);

}  // namespace wan
