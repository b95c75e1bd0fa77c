// Where a model is read from: a checkpoint's folder, files of single components, or both. All
// functions are thread-safe and read no file.
#pragma once

#include <array>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace wan {

// A part of a model whose file a setting can name. "transformer" is for models with one expert,
// "transformer.high" and "transformer.low" are for models with two.
enum class ModelPart {
  kTransformer,
  kHighNoise,
  kLowNoise,
  kTextEncoder,
  kVae,
  kTokenizer,
  kTinyDecoder,  // optional
};

inline constexpr std::array kModelParts = {
    ModelPart::kTransformer, ModelPart::kHighNoise, ModelPart::kLowNoise,   ModelPart::kTextEncoder,
    ModelPart::kVae,         ModelPart::kTokenizer, ModelPart::kTinyDecoder};

// Returns the part's name, for example "transformer.high".
std::string_view NameOf(ModelPart part);

struct ModelSource {
  struct Part {
    ModelPart part = ModelPart::kTransformer;
    std::string path;
  };
  // The folder of a checkpoint, or "synthetic:NAME"; empty if all parts are named.
  std::string base;
  // The parts that replace parts of `base`, in the order of ModelPart.
  std::vector<Part> parts;

  // Returns the path of the part; empty if it is not named.
  std::string PathOf(ModelPart part) const;
};

// Parses the text that stands for a model's path: a folder, or "KEY=PATH,KEY=PATH,..." with the
// names of parts as keys and "path" for the folder. The first PATH needs no key if it is the
// folder. A comma separates only if a key follows it. INVALID_ARGUMENT if a key is not known or
// occurs twice, or if a path is empty; the message begins with the key.
absl::StatusOr<ModelSource> ParseModelSource(std::string_view text);

// Returns the text that ParseModelSource reads; a folder alone has no key.
std::string ToString(const ModelSource& source);

// Returns the text with every path in it changed by `change`, which also gets the path's key; the
// key is empty if the text is only a folder. "synthetic:NAME" is not a path. A text that
// ParseModelSource refuses is returned as it is.
std::string ChangePaths(
    const std::string& text,
    const std::function<std::string(std::string_view key, const std::string& path)>& change);

}  // namespace wan
