// Reads the dimensions of components from either layout.
//
// In upstream's layout, config.json has those dimensions of the transformer that tensor shapes do
// not show. Upstream's text encoder and VAE have no config; their dimensions follow from tensor
// shapes and upstream's constants. diffusers has a config.json for every component.
//
// A function that finds problems appends them to `problems` and returns nullopt. Dimensions that
// are returned are within the ranges of config_limits.h. All functions are thread-safe.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "engine/checkpoint/model_config.h"
#include "engine/checkpoint/weight_tables.h"
#include "engine/formats/tensor_file.h"

namespace wan {

// `files` has the component's tensors; messages call the component's file `where`. If the files
// have problems of their own, the functions do not report missing tensors.
std::optional<TransformerConfig> ReadOriginalTransformer(const std::string& config_path,
                                                         const TensorFiles& files,
                                                         const std::string& where,
                                                         std::vector<absl::Status>& problems);
std::optional<TextEncoderConfig> ReadOriginalTextEncoder(const TensorFiles& files,
                                                         const std::string& where,
                                                         std::vector<absl::Status>& problems);
std::optional<VaeConfig> ReadOriginalVae(VaeKind kind, const TensorFiles& files,
                                         const std::string& where,
                                         std::vector<absl::Status>& problems);

// Read the dimensions only from the shapes of tensors. The tensors have the names of either layout.
// Dimensions that the shapes do not show come from `like` if it is set and has the same width, and
// otherwise from the published models. model_type comes from `like`, or is empty.
std::optional<TransformerConfig> ReadTransformerShapes(Naming naming, const TensorFiles& files,
                                                       const std::string& where,
                                                       const std::optional<TransformerConfig>& like,
                                                       std::vector<absl::Status>& problems);
std::optional<VaeConfig> ReadVaeShapes(Naming naming, const TensorFiles& files,
                                       const std::string& where,
                                       std::vector<absl::Status>& problems);
std::optional<TinyDecoderConfig> ReadTinyDecoderShapes(const TensorFiles& files,
                                                       const std::string& where,
                                                       std::vector<absl::Status>& problems);

// model_type stays empty, because diffusers' files do not have it.
std::optional<TransformerConfig> ReadDiffusersTransformer(const std::string& config_path,
                                                          std::vector<absl::Status>& problems);
std::optional<TextEncoderConfig> ReadDiffusersTextEncoder(const std::string& config_path,
                                                          std::vector<absl::Status>& problems);
std::optional<VaeConfig> ReadDiffusersVae(const std::string& config_path,
                                          std::vector<absl::Status>& problems);

}  // namespace wan
