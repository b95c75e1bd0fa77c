// Reads the dimensions of the components from either layout.
//
// Upstream's config.json has those dimensions of the transformer that tensor shapes do not show.
// Upstream's text encoder and VAE have no config; their dimensions follow from their shapes and
// upstream's constants. diffusers has a config.json for every component.
//
// On problems, functions append them to `problems` and return nullopt. Returned dimensions are
// within the ranges of config_limits.h. All functions are thread-safe.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "engine/checkpoint/model_config.h"
#include "engine/formats/tensor_file.h"

namespace wan {

// `files` holds the component's tensors; messages name `where`, the component's file. If the files
// have problems of their own, tensors that are missing here are not reported again.
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

// model_type stays empty, because diffusers has none.
std::optional<TransformerConfig> ReadDiffusersTransformer(const std::string& config_path,
                                                          std::vector<absl::Status>& problems);
std::optional<TextEncoderConfig> ReadDiffusersTextEncoder(const std::string& config_path,
                                                          std::vector<absl::Status>& problems);
std::optional<VaeConfig> ReadDiffusersVae(const std::string& config_path,
                                          std::vector<absl::Status>& problems);

}  // namespace wan
