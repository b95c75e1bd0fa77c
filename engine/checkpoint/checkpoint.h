// A checkpoint of a Wan2.2 model: dimensions and weights of its components under canonical names,
// whatever the layout.
//
//   absl::StatusOr<std::unique_ptr<Checkpoint>> checkpoint = Checkpoint::Open("/models/ti2v-5b");
//   const WeightSource& weights = (*checkpoint)->transformer();
//
// Both published layouts are read: upstream's (config.json, safetensors, .pth files) and diffusers'
// (model_index.json and a folder per component). docs/operate/checkpoints.md lists the files of
// each.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/api/model_file.h"
#include "engine/api/model_parts.h"
#include "engine/checkpoint/model_config.h"
#include "engine/checkpoint/weight_source.h"

namespace wan {

struct CheckpointParts;

enum class Layout { kOriginal, kDiffusers, kSynthetic };

// Returns "original", "diffusers" or "synthetic".
std::string_view LayoutName(Layout layout);

// A complete and validated checkpoint: it has exactly the tensors that its dimensions require, with
// the right shapes and a floating-point dtype. Immutable and thread-safe.
class Checkpoint {
 public:
  // Opens the folder of a checkpoint, or "synthetic:NAME" for a model without weights
  // (synthetic_models.h has the names).
  //
  // Files are mapped rather than read, so this takes milliseconds. DATA_LOSS for a damaged or
  // incomplete checkpoint, NOT_FOUND for a missing file or tensor, UNIMPLEMENTED for a checkpoint
  // that is not supported. The message names file and tensor of the first few problems; wan_inspect
  // lists all of them.
  static absl::StatusOr<std::unique_ptr<Checkpoint>> Open(const std::string& path);

  ~Checkpoint();
  Checkpoint(const Checkpoint&) = delete;
  Checkpoint& operator=(const Checkpoint&) = delete;

  const std::string& path() const;
  Layout layout() const;
  FamilyId family() const;

  // Returns 1, or 2 for the A14B models: expert 0 is for high noise, expert 1 for low noise.
  int num_experts() const;
  // The high-noise expert handles timesteps at or above this fraction of the schedule; nullopt if
  // there is one expert.
  std::optional<double> expert_boundary() const;

  // The schedule of a distilled checkpoint; nullopt for an ordinary one.
  const std::optional<FewStepConfig>& few_step() const;

  // The checkpoint's own defaults for requests; nullopt if it has none.
  const std::optional<GenerationDefaults>& generation_defaults() const;

  const TransformerConfig& transformer_config(int expert = 0) const;
  const TextEncoderConfig& text_encoder_config() const;
  const VaeConfig& vae_config() const;

  const WeightSource& transformer(int expert = 0) const;
  const WeightSource& text_encoder() const;
  const WeightSource& vae() const;

  // The checkpoint's files, sorted by name; none if it is synthetic.
  const std::vector<ModelFile>& files() const;

  // Path of the SentencePiece model; empty if the checkpoint is synthetic.
  const std::string& tokenizer_path() const;

 private:
  explicit Checkpoint(std::unique_ptr<const CheckpointParts> parts);

  const std::unique_ptr<const CheckpointParts> parts_;
};

}  // namespace wan
