// A checkpoint of a Wan2.2 model: its components' dimensions and weights, in one naming.
//
//   absl::StatusOr<std::unique_ptr<Checkpoint>> checkpoint = Checkpoint::Open("/models/ti2v-5b");
//   const WeightSource& weights = (*checkpoint)->transformer();
//
// Both published layouts are read: upstream's (config.json, safetensors, .pth files) and diffusers'
// (model_index.json and a folder per component). docs/checkpoints.md lists the files of each.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "engine/api/model_parts.h"
#include "engine/checkpoint/model_config.h"
#include "engine/checkpoint/weight_source.h"

namespace wan {

struct CheckpointParts;

enum class Layout { kOriginal, kDiffusers, kSynthetic };

// "original", "diffusers", "synthetic".
std::string_view LayoutName(Layout layout);

// Complete and checked: every tensor of the model is there with the shape that the dimensions ask
// for and a floating-point dtype, and there is none besides.
class Checkpoint {
 public:
  // `path` is the folder of a checkpoint, or "synthetic:NAME" for a model without weights
  // (synthetic_models.h has the names).
  //
  // Files are mapped, not read: this costs milliseconds. A damaged or incomplete checkpoint gives
  // DATA_LOSS, a missing file or tensor NOT_FOUND, what we do not serve UNIMPLEMENTED; the message
  // names file and tensor, for the first few of all problems (wan_inspect lists them all).
  static absl::StatusOr<std::unique_ptr<Checkpoint>> Open(const std::string& path);

  ~Checkpoint();
  Checkpoint(const Checkpoint&) = delete;
  Checkpoint& operator=(const Checkpoint&) = delete;

  const std::string& path() const;
  Layout layout() const;
  FamilyId family() const;

  // 1, or 2 for the A14B models: expert 0 is for high noise, expert 1 for low noise.
  int num_experts() const;
  // The high-noise expert takes the timesteps from this fraction of the schedule on; nullopt with
  // one expert.
  std::optional<double> expert_boundary() const;

  // How a distilled checkpoint is sampled; nullopt for an ordinary one.
  const std::optional<FewStepConfig>& few_step() const;

  // Its own defaults of requests; nullopt if it has none.
  const std::optional<GenerationDefaults>& generation_defaults() const;

  const TransformerConfig& transformer_config(int expert = 0) const;
  const TextEncoderConfig& text_encoder_config() const;
  const VaeConfig& vae_config() const;

  const WeightSource& transformer(int expert = 0) const;
  const WeightSource& text_encoder() const;
  const WeightSource& vae() const;

  // The SentencePiece model; empty for a synthetic checkpoint, which has none.
  const std::string& tokenizer_path() const;

 private:
  explicit Checkpoint(std::unique_ptr<const CheckpointParts> parts);

  const std::unique_ptr<const CheckpointParts> parts_;
};

}  // namespace wan
