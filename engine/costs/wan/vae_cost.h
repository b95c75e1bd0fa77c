// The one description of the autoencoders' cost, from their dimensions alone: groups of weights,
// memory while they compute, floating-point operations. Pure functions without LibTorch. They
// follow vae_layers.cc, vae_decoder.cc and vae_encoder.cc of engine/models/wan tensor by tensor, so
// a change there belongs here as well; tests/engine/costs/wan/vae_cost_test.cc compares them with
// what the code allocates. Sizes are in bytes; `element_bytes` is the size of the compute dtype.
#pragma once

#include <cstdint>

#include "engine/api/vae_precision.h"
#include "engine/checkpoint/model_config.h"
#include "engine/costs/latent_size.h"
#include "engine/costs/weight_groups.h"

namespace wan {

// Returns the groups: an empty one; the encoder; the decoder.
WeightGroups VaeWeightGroups(const VaeConfig& config);

// Returns the memory that VideoAutoencoder::Decode holds, with the frames' download to the host.
uint64_t DecodingBytes(const VaeConfig& config, const LatentSize& size, int64_t element_bytes);

// Returns the memory that VideoAutoencoder::Encode holds for a video with latents of `size`.
uint64_t EncodingBytes(const VaeConfig& config, const LatentSize& size, int64_t element_bytes);

// The arithmetic of a pass.
struct VaeArithmetic {
  VaePrecision precision = VaePrecision::kFp32;
  // On a GPU that has the kernels of engine/ops/fused_convolution.h, which need fewer copies of
  // activations.
  bool fused = false;
};

// The same for a pass that computes so, with the copies of weights that it makes.
uint64_t DecodingBytes(const VaeConfig& config, const LatentSize& size,
                       const VaeArithmetic& arithmetic);
uint64_t EncodingBytes(const VaeConfig& config, const LatentSize& size,
                       const VaeArithmetic& arithmetic);

// Return the floating-point operations of decoding, or of encoding, a whole video with latents of
// `size`: every convolution as its definition has it, and the attention in the middle. The kernels
// of engine/ops/fused_convolution.h compute fewer where a convolution follows an enlargement.
double DecodingFlops(const VaeConfig& config, const LatentSize& size);
double EncodingFlops(const VaeConfig& config, const LatentSize& size);

}  // namespace wan
