#include "engine/checkpoint/config_limits.h"

#include <algorithm>
#include <string_view>

#include "absl/strings/str_cat.h"

namespace wan {
namespace {

class Findings {
 public:
  void Range(std::string_view name, int64_t value, int64_t max) {
    if (value < 1 || value > max) {
      found_.push_back(absl::StrCat(std::string(name), " is ", value, ", expected 1 to ", max));
    }
  }

  void Require(bool holds, std::string_view what) {
    if (!holds) found_.emplace_back(what);
  }

  bool empty() const { return found_.empty(); }
  std::vector<std::string> Take() { return std::move(found_); }

 private:
  std::vector<std::string> found_;
};

}  // namespace

std::vector<std::string> Contradictions(const TransformerConfig& config) {
  Findings findings;
  findings.Range("dim", config.dim, kMaxWidth);
  findings.Range("ffn_dim", config.ffn_dim, kMaxWidth);
  findings.Range("freq_dim", config.freq_dim, kMaxWidth);
  findings.Range("num_heads", config.num_heads, kMaxWidth);
  findings.Range("num_layers", config.num_layers, kMaxLayers);
  findings.Range("in_channels", config.in_channels, kMaxWidth);
  findings.Range("out_channels", config.out_channels, kMaxWidth);
  findings.Range("text_dim", config.text_dim, kMaxWidth);
  findings.Range("text_len", config.text_len, kMaxWidth);
  for (const int64_t extent : config.patch_size) findings.Range("patch_size", extent, kMaxPatch);
  if (!findings.empty()) return findings.Take();
  // Rotary embeddings and timestep sinusoids use pairs of channels.
  findings.Require(config.dim % (2 * config.num_heads) == 0,
                   absl::StrCat("dim ", config.dim, " is not divisible into ", config.num_heads,
                                " heads of even width"));
  findings.Require(config.freq_dim % 2 == 0, absl::StrCat("freq_dim ", config.freq_dim, " is odd"));
  findings.Require(config.eps > 0 && config.eps < 1,
                   absl::StrCat("eps ", config.eps, " is not between 0 and 1"));
  return findings.Take();
}

std::vector<std::string> Contradictions(const TextEncoderConfig& config) {
  Findings findings;
  findings.Range("dim", config.dim, kMaxWidth);
  findings.Range("ffn_dim", config.ffn_dim, kMaxWidth);
  findings.Range("num_heads", config.num_heads, kMaxWidth);
  findings.Range("head_dim", config.head_dim, kMaxWidth);
  findings.Range("num_layers", config.num_layers, kMaxLayers);
  findings.Range("num_buckets", config.num_buckets, kMaxWidth);
  findings.Range("vocab_size", config.vocab_size, kMaxVocabulary);
  if (!findings.empty()) return findings.Take();
  // Half of the buckets serve each direction, and half of these stand for exact distances.
  findings.Require(config.num_buckets % 4 == 0,
                   absl::StrCat("num_buckets ", config.num_buckets, " is not a multiple of 4"));
  return findings.Take();
}

std::vector<std::string> Contradictions(const VaeConfig& config) {
  Findings findings;
  findings.Range("z_dim", config.z_dim, kMaxWidth);
  findings.Range("base_dim", config.base_dim, kMaxWidth);
  findings.Range("decoder_base_dim", config.decoder_base_dim, kMaxWidth);
  findings.Range("number of stages", static_cast<int64_t>(config.dim_mult.size()), kMaxStages);
  for (const int64_t factor : config.dim_mult) findings.Range("dim_mult", factor, kMaxMultiplier);
  findings.Range("num_res_blocks", config.num_res_blocks, kMaxResBlocks);
  findings.Range("patch_size", config.patch_size, kMaxPatch);
  if (!findings.empty()) return findings.Take();
  findings.Require(config.temporal_downsample.size() + 1 == config.dim_mult.size(),
                   absl::StrCat("temporal_downsample has ", config.temporal_downsample.size(),
                                " entries, expected ", config.dim_mult.size() - 1));
  const auto z_dim = static_cast<size_t>(config.z_dim);
  findings.Require(config.latents_mean.size() == z_dim && config.latents_std.size() == z_dim,
                   absl::StrCat("latents_mean and latents_std have ", config.latents_mean.size(),
                                " and ", config.latents_std.size(), " entries, expected ", z_dim));
  findings.Require(std::all_of(config.latents_std.begin(), config.latents_std.end(),
                               [](double std) { return std > 0; }),
                   "latents_std is not positive everywhere");
  if (config.kind == VaeKind::kWan21) {
    findings.Require(config.decoder_base_dim == config.base_dim && config.patch_size == 1,
                     "decoder_base_dim or patch_size differs from that of the 2.1 VAE");
    findings.Require(config.base_dim % 2 == 0,
                     absl::StrCat("base_dim ", config.base_dim, " is odd"));
  }
  return findings.Take();
}

std::vector<std::string> Contradictions(const TinyDecoderConfig& config) {
  Findings findings;
  findings.Range("z_dim", config.z_dim, kMaxWidth);
  for (const int64_t width : config.widths) findings.Range("width", width, kMaxWidth);
  return findings.Take();
}

std::vector<std::string> Contradictions(const FewStepConfig& config) {
  constexpr double kTrainTimesteps = 1000;
  constexpr double kMinShift = 0.01;
  constexpr double kMaxShift = 100;
  Findings findings;
  const auto steps = static_cast<int64_t>(config.timesteps.size());
  findings.Range("number of timesteps", steps, kMaxFewSteps);
  double above = kTrainTimesteps;
  for (int64_t i = 0; i < steps; ++i) {
    const double timestep = config.timesteps[i];
    const bool falls = i == 0 ? timestep <= above : timestep < above;
    // Written this way, the condition also rejects NaN.
    findings.Require(falls && timestep > 0,
                     absl::StrCat("timestep ", i, " is ", timestep,
                                  ", expected strictly decreasing timesteps above 0 and at most ",
                                  kTrainTimesteps));
    above = timestep;
  }
  findings.Require(
      config.shift >= kMinShift && config.shift <= kMaxShift,
      absl::StrCat("shift is ", config.shift, ", expected ", kMinShift, " to ", kMaxShift));
  if (config.boundary_step_index.has_value()) {
    findings.Require(*config.boundary_step_index >= 0 && *config.boundary_step_index <= steps,
                     absl::StrCat("boundary_step_index is ", *config.boundary_step_index,
                                  ", but there are ", steps, " steps"));
  }
  return findings.Take();
}

}  // namespace wan
