// A checkpoint of a Wan2.2 model: the dimensions and weights of its components, under canonical
// names in every layout.
//
//   absl::StatusOr<std::unique_ptr<Checkpoint>> checkpoint = Checkpoint::Open("/models/ti2v-5b");
//   const WeightSource& weights = (*checkpoint)->transformer();
//
// A checkpoint can also be put together from files of single components, whose tensors have the
// names of upstream, diffusers, ComfyUI or llama.cpp (engine/api/model_source.h).
//
// There are two published layouts: upstream's (config.json, safetensors, .pth files) and diffusers'
// (model_index.json and one folder per component). docs/operate/checkpoints.md lists the files of
// each.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/api/model_file.h"
#include "engine/api/model_parts.h"
#include "engine/checkpoint/model_config.h"
#include "engine/checkpoint/weight_source.h"
#include "engine/families/step_ratios.h"

namespace wan {

struct CheckpointParts;

enum class Layout { kOriginal, kDiffusers, kSynthetic, kFiles };

// Returns "original", "diffusers", "synthetic", or "files" if parts were named.
std::string_view LayoutName(Layout layout);

// A complete and checked checkpoint: it has exactly the tensors that its dimensions require, with
// the right shapes and a floating-point dtype. Immutable and thread-safe.
class Checkpoint {
 public:
  // Opens the folder of a checkpoint, or the parts that `path` names. "synthetic:NAME" stands for a
  // model without stored weights (synthetic_models.h lists the names).
  //
  // The call takes milliseconds, because it maps the files and does not read them. DATA_LOSS if the
  // checkpoint is damaged or incomplete, NOT_FOUND if a file or tensor is missing, UNIMPLEMENTED if
  // the checkpoint is not supported. The message names file and tensor of the first few problems;
  // the program wan_inspect lists all of them.
  static absl::StatusOr<std::unique_ptr<Checkpoint>> Open(const std::string& path);

  ~Checkpoint();
  Checkpoint(const Checkpoint&) = delete;
  Checkpoint& operator=(const Checkpoint&) = delete;

  const std::string& path() const;
  // Returns the folder; empty if all parts were named.
  const std::string& folder() const;
  Layout layout() const;
  FamilyId family() const;

  // Returns the number of experts: 1, or 2 for the A14B models, whose expert 0 is for high noise
  // and expert 1 for low noise.
  int num_experts() const;
  // Returns the fraction of the schedule from which on the high-noise expert computes the
  // timesteps; nullopt if there is only one expert.
  std::optional<double> expert_boundary() const;

  // Returns the schedule of a distilled checkpoint; nullopt for an ordinary checkpoint.
  const std::optional<FewStepConfig>& few_step() const;

  // Returns the checkpoint's own defaults for requests; nullopt if it has none.
  const std::optional<GenerationDefaults>& generation_defaults() const;

  // Returns the ratios that were measured with this checkpoint; nullopt if it has no file
  // step_ratios.json.
  const std::optional<StepRatios>& step_ratios() const;

  const TransformerConfig& transformer_config(int expert = 0) const;
  const TextEncoderConfig& text_encoder_config() const;
  const VaeConfig& vae_config() const;

  // Returns why the tiny decoder that lies in the folder cannot be used; the message names its
  // file. OK if there is none, or if the model has it (VaeConfig::tiny_decoder).
  absl::Status tiny_decoder_error() const;

  const WeightSource& transformer(int expert = 0) const;
  const WeightSource& text_encoder() const;
  const WeightSource& vae() const;

  // Returns the checkpoint's files, sorted by name; a synthetic checkpoint has no files.
  const std::vector<ModelFile>& files() const;

  // Returns the path of the SentencePiece model; empty if the checkpoint is synthetic.
  const std::string& tokenizer_path() const;

 private:
  explicit Checkpoint(std::unique_ptr<const CheckpointParts> parts);

  const std::unique_ptr<const CheckpointParts> parts_;
};

}  // namespace wan
