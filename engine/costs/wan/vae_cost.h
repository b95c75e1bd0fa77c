// The autoencoders' cost, computed from their dimensions alone: groups of weights, memory during
// computation, floating-point operations. Pure functions without LibTorch. They mirror
// vae_layers.cc, vae_decoder.cc and vae_encoder.cc of engine/models/wan tensor by tensor, so change
// both together; tests/engine/costs/wan/vae_cost_test.cc compares them with what the code
// allocates. Sizes are in bytes; `element_bytes` is per element of the compute dtype.
#pragma once

#include <cstdint>

#include "engine/api/vae_precision.h"
#include "engine/checkpoint/model_config.h"
#include "engine/costs/latent_size.h"
#include "engine/costs/weight_groups.h"

namespace wan {

// Returns three groups: an empty one, the encoder, the decoder.
WeightGroups VaeWeightGroups(const VaeConfig& config);

// Returns the memory that VideoAutoencoder::Decode needs, including the download of frames to the
// host.
uint64_t DecodingBytes(const VaeConfig& config, const LatentSize& size, int64_t element_bytes);

// Returns the memory that VideoAutoencoder::Encode needs for a video with latents of `size`.
uint64_t EncodingBytes(const VaeConfig& config, const LatentSize& size, int64_t element_bytes);

// How a pass computes.
struct VaeArithmetic {
  VaePrecision precision = VaePrecision::kFp32;
  // Whether it runs on a GPU with the kernels of engine/ops/fused_convolution.h, which need fewer
  // copies of activations.
  bool fused = false;
};

// The same for a pass with this arithmetic, including the copies of weights that it makes.
uint64_t DecodingBytes(const VaeConfig& config, const LatentSize& size,
                       const VaeArithmetic& arithmetic);
uint64_t EncodingBytes(const VaeConfig& config, const LatentSize& size,
                       const VaeArithmetic& arithmetic);

// Return the floating-point operations of decoding or encoding a whole video with latents of
// `size`: every convolution by its definition, and the middle attention. The kernels of
// engine/ops/fused_convolution.h compute fewer in convolutions after upsampling.
double DecodingFlops(const VaeConfig& config, const LatentSize& size);
double EncodingFlops(const VaeConfig& config, const LatentSize& size);

}  // namespace wan
