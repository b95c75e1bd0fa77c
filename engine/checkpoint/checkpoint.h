// A checkpoint of a Wan2.2 model: the dimensions and weights of its components, under one naming.
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

// A complete and checked checkpoint: it has every tensor of the model, each with the shape that
// follows from the dimensions and a floating-point dtype, and no other tensors. Immutable and
// thread-safe.
class Checkpoint {
 public:
  // Opens the folder of a checkpoint, or "synthetic:NAME" for a model without weights
  // (synthetic_models.h has the names).
  //
  // Files are mapped and not read, so this takes milliseconds. DATA_LOSS for a damaged or
  // incomplete checkpoint, NOT_FOUND for a missing file or tensor, UNIMPLEMENTED for a checkpoint
  // that is not supported. The message names file and tensor of the first few problems; wan_inspect
  // lists all.
  static absl::StatusOr<std::unique_ptr<Checkpoint>> Open(const std::string& path);

  ~Checkpoint();
  Checkpoint(const Checkpoint&) = delete;
  Checkpoint& operator=(const Checkpoint&) = delete;

  const std::string& path() const;
  Layout layout() const;
  FamilyId family() const;

  // Returns 1, or 2 for the A14B models, whose expert 0 is for high noise and expert 1 for low
  // noise.
  int num_experts() const;
  // The high-noise expert computes the timesteps from this fraction of the schedule upwards;
  // nullopt if there is one expert.
  std::optional<double> expert_boundary() const;

  // The schedule of a distilled checkpoint; nullopt for an ordinary one.
  const std::optional<FewStepConfig>& few_step() const;

  // The checkpoint's own defaults of requests; nullopt if it has none.
  const std::optional<GenerationDefaults>& generation_defaults() const;

  const TransformerConfig& transformer_config(int expert = 0) const;
  const TextEncoderConfig& text_encoder_config() const;
  const VaeConfig& vae_config() const;

  const WeightSource& transformer(int expert = 0) const;
  const WeightSource& text_encoder() const;
  const WeightSource& vae() const;

  // The files that it was read from, sorted by name; none for a synthetic checkpoint.
  const std::vector<ModelFile>& files() const;

  // The path of the SentencePiece model; empty for a synthetic checkpoint, which has none.
  const std::string& tokenizer_path() const;

 private:
  explicit Checkpoint(std::unique_ptr<const CheckpointParts> parts);

  const std::unique_ptr<const CheckpointParts> parts_;
};

}  // namespace wan
