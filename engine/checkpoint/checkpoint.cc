#include "engine/checkpoint/checkpoint.h"

#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "engine/checkpoint/checkpoint_parts.h"
#include "engine/formats/file_errors.h"

namespace wan {

std::string_view LayoutName(Layout layout) {
  switch (layout) {
    case Layout::kOriginal:
      return "original";
    case Layout::kDiffusers:
      return "diffusers";
    case Layout::kSynthetic:
      return "synthetic";
    case Layout::kFiles:
      return "files";
  }
  return "unknown";
}

absl::StatusOr<std::unique_ptr<Checkpoint>> Checkpoint::Open(const std::string& path) {
  auto parts = std::make_unique<CheckpointParts>(ReadCheckpointParts(path));
  const std::vector<absl::Status> problems = AllProblems(*parts);
  if (!problems.empty()) return Summarise(problems);
  return std::unique_ptr<Checkpoint>(new Checkpoint(std::move(parts)));
}

Checkpoint::Checkpoint(std::unique_ptr<const CheckpointParts> parts) : parts_(std::move(parts)) {}

Checkpoint::~Checkpoint() = default;

const std::string& Checkpoint::path() const { return parts_->path; }

const std::string& Checkpoint::folder() const { return parts_->folder; }

Layout Checkpoint::layout() const { return *parts_->layout; }

FamilyId Checkpoint::family() const { return *parts_->family; }

int Checkpoint::num_experts() const { return static_cast<int>(parts_->transformers.size()); }

std::optional<double> Checkpoint::expert_boundary() const { return parts_->expert_boundary; }

const std::optional<FewStepConfig>& Checkpoint::few_step() const { return parts_->few_step; }
const std::optional<GenerationDefaults>& Checkpoint::generation_defaults() const {
  return parts_->generation_defaults;
}
const std::optional<StepRatios>& Checkpoint::step_ratios() const { return parts_->step_ratios; }

const TransformerConfig& Checkpoint::transformer_config(int expert) const {
  return *parts_->transformers.at(expert).config;
}

const TextEncoderConfig& Checkpoint::text_encoder_config() const {
  return *parts_->text_encoder.config;
}

const VaeConfig& Checkpoint::vae_config() const { return *parts_->vae.config; }

absl::Status Checkpoint::tiny_decoder_error() const {
  const std::vector<absl::Status>& problems = parts_->tiny_decoder.problems;
  return problems.empty() ? absl::OkStatus() : Summarise(problems);
}

const WeightSource& Checkpoint::transformer(int expert) const {
  return *parts_->transformers.at(expert).weights;
}

const WeightSource& Checkpoint::text_encoder() const { return *parts_->text_encoder.weights; }

const WeightSource& Checkpoint::vae() const { return *parts_->vae.weights; }

const std::vector<ModelFile>& Checkpoint::files() const { return parts_->files; }

const std::string& Checkpoint::tokenizer_path() const { return parts_->tokenizer_path; }

}  // namespace wan
