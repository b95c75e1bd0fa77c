// What could be read of a checkpoint, and everything that is wrong with it: what Checkpoint holds
// when nothing is, and what inspection reports when something is.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "engine/api/model_parts.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/checkpoint/model_config.h"
#include "engine/checkpoint/weight_source.h"
#include "engine/formats/tensor_file.h"

namespace wan {

template <typename Config>
struct Component {
  std::string name;                       // "transformer", "transformer_2", "text_encoder" or "vae"
  std::string where;                      // its file, or the index of its files
  TensorFiles files;                      // empty if synthetic
  std::optional<Config> config;           // absent if it could not be made out
  std::unique_ptr<WeightSource> weights;  // absent if files or config have problems
  std::vector<absl::Status> problems;     // those of the files, too
};

struct CheckpointParts {
  std::string path;
  std::optional<Layout> layout;
  std::optional<FamilyId> family;  // absent if it could not be made out
  std::optional<double> expert_boundary;
  std::optional<FewStepConfig> few_step;
  std::optional<GenerationDefaults> generation_defaults;
  std::string tokenizer_path;
  std::vector<Component<TransformerConfig>> transformers;  // one per expert
  Component<TextEncoderConfig> text_encoder;
  Component<VaeConfig> vae;
  std::vector<absl::Status> problems;  // of no component, or between components
};

// Never fails: problems are part of the result.
CheckpointParts ReadCheckpointParts(const std::string& path);

// Those of the whole, then those of the components.
std::vector<absl::Status> AllProblems(const CheckpointParts& parts);

}  // namespace wan
