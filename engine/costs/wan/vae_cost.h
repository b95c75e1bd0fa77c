// Computes what the autoencoders cost from their dimensions alone: groups of weights, memory during
// computation, floating-point operations. All functions are pure and need no LibTorch. The
// functions mirror vae_layers.cc, vae_decoder.cc and vae_encoder.cc of engine/models/wan tensor by
// tensor, so change both together; tests/engine/costs/wan/vae_cost_test.cc compares them with what
// the code allocates. All sizes are in bytes; `element_bytes` is the size of one element of the
// compute dtype.
#pragma once

#include <cstdint>

#include "engine/api/decoder.h"
#include "engine/api/vae_precision.h"
#include "engine/checkpoint/model_config.h"
#include "engine/costs/latent_size.h"
#include "engine/costs/weight_groups.h"

namespace wan {

// Returns the groups of weights: an empty group, the encoder, the decoder, and the tiny decoder if
// there is one.
WeightGroups VaeWeightGroups(const VaeConfig& config);

// Returns the device memory that VideoAutoencoder::Decode needs, including the download of frames
// to the host.
uint64_t DecodingBytes(const VaeConfig& config, const LatentSize& size, int64_t element_bytes);

// Returns the device memory that VideoAutoencoder::Encode needs for a video with latents of `size`.
uint64_t EncodingBytes(const VaeConfig& config, const LatentSize& size, int64_t element_bytes);

// The arithmetic of one encoding or decoding.
struct VaeArithmetic {
  VaePrecision precision = VaePrecision::kFp32;
  // Whether the pass runs on a GPU that has the kernels of engine/ops/fused_convolution.h, which
  // need fewer copies of activations.
  bool fused = false;
  // The network that decodes. `decoder` must be kFull if the autoencoder has no tiny decoder.
  Decoder decoder = Decoder::kFull;
};

// Return the device memory of decoding or encoding in the given arithmetic, including the 16-bit
// copies of weights that the pass makes.
uint64_t DecodingBytes(const VaeConfig& config, const LatentSize& size,
                       const VaeArithmetic& arithmetic);
uint64_t EncodingBytes(const VaeConfig& config, const LatentSize& size,
                       const VaeArithmetic& arithmetic);

// Return the floating-point operations of decoding or encoding a whole video with latents of
// `size`: every convolution by its definition, and the middle attention. After upsampling, the
// kernels of engine/ops/fused_convolution.h compute fewer operations.
double DecodingFlops(const VaeConfig& config, const LatentSize& size,
                     Decoder decoder = Decoder::kFull);
double EncodingFlops(const VaeConfig& config, const LatentSize& size);

}  // namespace wan
