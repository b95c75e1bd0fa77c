// The dimensions of a checkpoint's components. They are always read from config files and tensor
// shapes, never assumed.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/families/vae_kind.h"

namespace wan {

// The diffusion transformer (upstream's WanModel).
struct TransformerConfig {
  int64_t dim = 0;                      // width of the residual stream
  int64_t ffn_dim = 0;                  // hidden width of the feed-forward layers
  int64_t freq_dim = 0;                 // width of the timestep's sinusoid
  int64_t num_heads = 0;                // divides dim
  int64_t num_layers = 0;               // blocks
  int64_t in_channels = 0;              // latent channels, plus those of the image condition if any
  int64_t out_channels = 0;             // latent channels
  int64_t text_dim = 0;                 // width of the text encoder's hidden states
  int64_t text_len = 0;                 // tokens that text is padded to
  std::array<int64_t, 3> patch_size{};  // frames, rows and columns of latents in a token
  double eps = 0;                       // epsilon of all norms
  std::string model_type;               // as in ModelFamily::upstream_type
  bool cross_attn_norm = true;          // the norm before the cross-attention has weights ("norm3")
  bool qk_norm = true;                  // RMS norm of queries and keys

  friend bool operator==(const TransformerConfig&, const TransformerConfig&) = default;
};

// The UMT5 encoder.
struct TextEncoderConfig {
  int64_t dim = 0;        // width of the hidden states
  int64_t ffn_dim = 0;    // hidden width of the gated feed-forward layers
  int64_t num_heads = 0;  // num_heads * head_dim need not be dim
  int64_t head_dim = 0;
  int64_t num_layers = 0;
  int64_t num_buckets = 0;  // rows of a block's table of relative positions
  int64_t vocab_size = 0;   // rows of the token embedding

  friend bool operator==(const TextEncoderConfig&, const TextEncoderConfig&) = default;
};

// The video autoencoder.
struct VaeConfig {
  VaeKind kind = VaeKind::kWan22;
  int64_t z_dim = 0;              // latent channels
  int64_t base_dim = 0;           // width of the encoder's first stage at multiplier 1
  int64_t decoder_base_dim = 0;   // same for the decoder; equals base_dim in the 2.1 VAE
  std::vector<int64_t> dim_mult;  // width multiplier of each stage, in the encoder's order
  int num_res_blocks = 0;  // residual blocks of an encoder stage; decoder stages have one more
  // Whether each of the encoder's downsampling steps (one fewer than stages) also halves the
  // frames.
  std::vector<bool> temporal_downsample;
  int64_t patch_size =
      0;  // side of the pixel patches that are folded into channels; 1 in the 2.1 VAE
  int64_t stride_spatial = 0;        // rows and columns of pixels per latent
  int64_t stride_temporal = 0;       // frames per latent frame, after the first
  std::vector<double> latents_mean;  // [z_dim]; the transformer's latents are (z - mean) / std
  std::vector<double> latents_std;   // [z_dim]

  friend bool operator==(const VaeConfig&, const VaeConfig&) = default;
};

// The schedule of a few-step checkpoint, which was distilled to run a few fixed Euler steps without
// guidance.
struct FewStepConfig {
  std::vector<double> timesteps;  // before the shift is applied; strictly decreasing, in (0, 1000]
  double shift = 1;               // default shift of requests
  // Index of the first step that the low-noise expert computes. If unset, the boundary between the
  // experts decides.
  std::optional<int> boundary_step_index;

  friend bool operator==(const FewStepConfig&, const FewStepConfig&) = default;
};

// Defaults for requests, from checkpoints that were trained for other sizes or schedules than their
// family's published one. An unset field falls back to the family's default.
struct GenerationDefaults {
  std::optional<int> width;  // pixels
  std::optional<int> height;
  std::optional<int> num_frames;
  std::optional<int> fps;
  std::optional<int> steps;
  std::vector<double> guidance_scale;  // one value, or two (low noise, high noise); empty: unset
  std::optional<double> shift;
  std::optional<std::string> solver;
  std::optional<std::string> negative_prompt;

  friend bool operator==(const GenerationDefaults&, const GenerationDefaults&) = default;
};

}  // namespace wan
