// Dimensions of the components, from either layout.
//
// Upstream's config.json has those of the transformer that shapes do not show; its text encoder and
// VAE have no config, and their shapes and upstream's constants tell all. diffusers has a
// config.json for every component.
//
// Every function appends what is wrong to `problems` and gives nothing then. Dimensions that it
// gives are in the ranges of config_limits.h.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "engine/checkpoint/model_config.h"
#include "engine/formats/tensor_file.h"

namespace wan {

// `files` holds the component's tensors, `where` is the component's file for messages. Where files
// have problems of their own, tensors that are needed here and missing are no further ones.
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

// model_type is left empty: diffusers has none.
std::optional<TransformerConfig> ReadDiffusersTransformer(const std::string& config_path,
                                                          std::vector<absl::Status>& problems);
std::optional<TextEncoderConfig> ReadDiffusersTextEncoder(const std::string& config_path,
                                                          std::vector<absl::Status>& problems);
std::optional<VaeConfig> ReadDiffusersVae(const std::string& config_path,
                                          std::vector<absl::Status>& problems);

}  // namespace wan
