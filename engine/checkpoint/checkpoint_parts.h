// The parts of a checkpoint that could be read, and all problems that were found. If there are no
// problems, a Checkpoint takes ownership of the parts. Inspection reports both parts and problems.
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
#include "engine/families/step_ratios.h"
#include "engine/formats/tensor_file.h"

namespace wan {

template <typename Config>
struct Component {
  std::string name;                       // "transformer", "transformer_2", "text_encoder", "vae"
  std::string where;                      // path of its file, or of the index of its files
  TensorFiles files;                      // empty if the checkpoint is synthetic
  std::optional<Config> config;           // absent if the config could not be read
  std::unique_ptr<WeightSource> weights;  // absent if the files or the config have problems
  std::vector<absl::Status> problems;     // problems of this component and of its files
};

struct CheckpointParts {
  std::string path;    // the folder, or the text that names parts (engine/api/model_source.h)
  std::string folder;  // the folder with the files that are not named; empty if there is none
  std::optional<Layout> layout;
  std::string pipeline_class;      // in model_index.json; empty in upstream's layout
  std::optional<FamilyId> family;  // null if the model's family could not be determined
  std::optional<double> expert_boundary;
  std::optional<FewStepConfig> few_step;
  std::optional<GenerationDefaults> generation_defaults;
  std::optional<StepRatios> step_ratios;
  std::string tokenizer_path;
  std::vector<ModelFile> files;  // all files that were read, sorted by name
  std::vector<Component<TransformerConfig>> transformers;  // one entry for each expert
  Component<TextEncoderConfig> text_encoder;
  // The autoencoder. Its weights include the tiny decoder's, if the model has one.
  Component<VaeConfig> vae;
  Component<TinyDecoderConfig> tiny_decoder;  // has no files if the model has no tiny decoder
  // Whether the path names the tiny decoder. Problems of one that only lies in the folder are not
  // the checkpoint's, which is used without it.
  bool names_tiny_decoder = false;
  std::vector<absl::Status> problems;  // problems that concern the checkpoint as a whole
};

// Reads all parts of a checkpoint. The function never fails, because problems are part of the
// result. Thread-safe.
CheckpointParts ReadCheckpointParts(const std::string& path);

// Returns the problems of the checkpoint as a whole, then the problems of its components. A tiny
// decoder that the path does not name has none here.
std::vector<absl::Status> AllProblems(const CheckpointParts& parts);

}  // namespace wan
