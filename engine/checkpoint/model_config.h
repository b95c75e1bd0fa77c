// The dimensions of a checkpoint's components. Dimensions are always read from config files and
// tensor shapes, never assumed.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/api/timestep_rounding.h"
#include "engine/families/vae_kind.h"

namespace wan {

// Dimensions of the diffusion transformer (upstream's WanModel).
struct TransformerConfig {
  int64_t dim = 0;                      // width of the residual stream
  int64_t ffn_dim = 0;                  // hidden width of the feed-forward layers
  int64_t freq_dim = 0;                 // width of the sinusoids of timesteps
  int64_t num_heads = 0;                // must divide dim
  int64_t num_layers = 0;               // number of blocks
  int64_t in_channels = 0;              // latent channels, plus the channels of an image condition
  int64_t out_channels = 0;             // number of latent channels
  int64_t text_dim = 0;                 // width of the text encoder's hidden states
  int64_t text_len = 0;                 // number of tokens to which text is padded
  std::array<int64_t, 3> patch_size{};  // frames, rows and columns of latents that make a token
  double eps = 0;                       // epsilon of all norms
  std::string model_type;               // as ModelFamily::upstream_type
  bool cross_attn_norm = true;          // whether the norm before cross-attention ("norm3") has
                                        // weights
  bool qk_norm = true;                  // whether queries and keys pass an RMS norm

  friend bool operator==(const TransformerConfig&, const TransformerConfig&) = default;
};

// Dimensions of the UMT5 encoder.
struct TextEncoderConfig {
  int64_t dim = 0;        // width of the encoder's hidden states
  int64_t ffn_dim = 0;    // hidden width of the feed-forward layers, which are gated
  int64_t num_heads = 0;  // num_heads * head_dim may differ from dim
  int64_t head_dim = 0;
  int64_t num_layers = 0;
  int64_t num_buckets = 0;  // rows in each block's table of relative positions
  int64_t vocab_size = 0;   // rows of the table of token embeddings

  friend bool operator==(const TextEncoderConfig&, const TextEncoderConfig&) = default;
};

// Dimensions of a tiny decoder (TAEHV), which makes frames of an autoencoder's latents. A tiny
// decoder has kTinyStages stages. Each stage but the last doubles rows and columns; the second and
// third also double the frames.
inline constexpr size_t kTinyStages = 4;
inline constexpr int kTinyBlocks = 3;  // blocks of each stage but the last, which has none
struct TinyDecoderConfig {
  int64_t z_dim = 0;                          // number of latent channels
  std::array<int64_t, kTinyStages> widths{};  // channels of each stage
  int64_t patch_size = 1;  // side of the patches of pixels that are folded into channels
  // Whether the decoder takes the VAE's own latents z (LightX2V's "lighttae"), rather than the
  // transformer's latents (z - mean) / std.
  bool denormalises = false;

  int64_t stride_spatial() const { return 8 * patch_size; }
  static constexpr int64_t kStrideTemporal = 4;
  // Returns how many frames stage `stage` computes from each input frame.
  static constexpr int64_t Growth(size_t stage) { return stage == 1 || stage == 2 ? 2 : 1; }

  friend bool operator==(const TinyDecoderConfig&, const TinyDecoderConfig&) = default;
};

// Dimensions of the video autoencoder.
struct VaeConfig {
  VaeKind kind = VaeKind::kWan22;
  int64_t z_dim = 0;              // number of latent channels
  int64_t base_dim = 0;           // channels of the encoder's stages at multiplier 1
  int64_t decoder_base_dim = 0;   // the same for the decoder; equals base_dim in the 2.1 VAE
  std::vector<int64_t> dim_mult;  // multiplier of each stage's channels, in the encoder's order
  int num_res_blocks = 0;  // residual blocks of an encoder stage; decoder stages have one more
  // For each of the encoder's downsampling steps (one fewer than stages), whether it also halves
  // the number of frames.
  std::vector<bool> temporal_downsample;
  int64_t patch_size =
      0;  // side of the patches of pixels that are folded into channels; 1 in the 2.1 VAE
  int64_t stride_spatial = 0;        // rows, and columns, of pixels for each latent
  int64_t stride_temporal = 0;       // video frames for each latent frame after the first
  std::vector<double> latents_mean;  // z_dim values; the transformer's latents are (z - mean) / std
  std::vector<double> latents_std;   // z_dim values
  std::optional<TinyDecoderConfig> tiny_decoder = {};  // nullopt: the model has none

  friend bool operator==(const VaeConfig&, const VaeConfig&) = default;
};

// The schedule of a few-step checkpoint, which was distilled so that a few fixed steps without
// guidance are enough.
struct FewStepConfig {
  std::vector<double> timesteps;  // before the shift is applied; strictly decreasing, in (0, 1000]
  double shift = 1;               // the shift of requests that set none
  // The index of the first step that the low-noise expert computes. If unset, the boundary between
  // the experts decides that.
  std::optional<int> boundary_step_index;
  std::string solver = "euler";                         // "euler" or "lcm"
  TimestepRounding rounding = TimestepRounding::kNone;  // how timesteps are rounded after the shift
  // The name of the recognised distillation, and the feature by which it was recognised; empty if
  // the schedule is from a configuration file.
  std::string recognised;

  friend bool operator==(const FewStepConfig&, const FewStepConfig&) = default;
};

// A checkpoint's own defaults for requests. A checkpoint has its own defaults if it was trained for
// other sizes or schedules than its family's published checkpoint. A field that is not set falls
// back to the family's default.
struct GenerationDefaults {
  std::optional<int> width;  // width in pixels
  std::optional<int> height;
  std::optional<int> num_frames;
  std::optional<int> fps;
  std::optional<int> steps;
  std::vector<double> guidance_scale;  // one value, or two (low noise, high noise); empty: not set
  std::optional<double> shift;
  std::optional<std::string> solver;
  std::optional<std::string> negative_prompt;

  friend bool operator==(const GenerationDefaults&, const GenerationDefaults&) = default;
};

}  // namespace wan
