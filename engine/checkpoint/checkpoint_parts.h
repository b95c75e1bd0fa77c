// The parts of a checkpoint that could be read, and all problems found in it. If there are no
// problems, a Checkpoint takes the parts over; inspection reports parts and problems.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "engine/api/model_file.h"
#include "engine/api/model_parts.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/checkpoint/model_config.h"
#include "engine/checkpoint/weight_source.h"
#include "engine/formats/tensor_file.h"

namespace wan {

template <typename Config>
struct Component {
  std::string name;                       // "transformer", "transformer_2", "text_encoder" or "vae"
  std::string where;                      // path of its file, or of the index of its files
  TensorFiles files;                      // empty if the checkpoint is synthetic
  std::optional<Config> config;           // absent if the config could not be read
  std::unique_ptr<WeightSource> weights;  // absent if files or config have problems
  std::vector<absl::Status> problems;     // problems of the component, including those of its files
};

struct CheckpointParts {
  std::string path;
  std::optional<Layout> layout;
  std::optional<FamilyId> family;  // null if the family could not be determined
  std::optional<double> expert_boundary;
  std::optional<FewStepConfig> few_step;
  std::optional<GenerationDefaults> generation_defaults;
  std::string tokenizer_path;
  std::vector<ModelFile> files;  // all files that were read, sorted by name
  std::vector<Component<TransformerConfig>> transformers;  // one entry per expert
  Component<TextEncoderConfig> text_encoder;
  Component<VaeConfig> vae;
  std::vector<absl::Status> problems;  // problems of the checkpoint as a whole
};

// Reads a checkpoint. Never fails: problems are part of the result. Thread-safe.
CheckpointParts ReadCheckpointParts(const std::string& path);

// Returns the problems of the whole checkpoint, then those of the components.
std::vector<absl::Status> AllProblems(const CheckpointParts& parts);

}  // namespace wan
