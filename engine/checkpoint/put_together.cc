#include "engine/checkpoint/put_together.h"

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/api/file_problem.h"
#include "engine/checkpoint/component_assembly.h"
#include "engine/checkpoint/component_files.h"
#include "engine/checkpoint/config_reader.h"
#include "engine/checkpoint/weight_tables.h"
#include "engine/families/model_family.h"
#include "engine/formats/file_errors.h"

namespace wan {
namespace {

namespace fs = std::filesystem;
using Problems = std::vector<absl::Status>;

// The files of one component, after they were read.
struct ReadPart {
  explicit ReadPart(const std::string& of) : path(of), files(ReadComponentFiles(of)) {
    recognised = files.problems.empty() ? RecogniseComponent(path, files)
                                        : absl::StatusOr<Recognised>(files.problems.front());
  }

  std::string path;
  TensorFiles files;
  absl::StatusOr<Recognised> recognised;
};

// Builds the component `name` from its part, which must hold a component of this kind. `read` makes
// its config from the files' shapes.
template <typename Config, typename Read>
Component<Config> MakeNamed(std::string_view name, ComponentKind kind, ReadPart part, Read read) {
  const std::string& path = part.path;
  absl::StatusOr<Recognised> recognised = part.recognised;
  if (recognised.ok() && recognised->kind != kind) {
    recognised = absl::FailedPreconditionError(
        absl::StrCat(path, ": is a ", std::string(NameOf(recognised->kind)), "; must be a ",
                     std::string(NameOf(kind))));
  }
  const Naming naming = recognised.ok() ? recognised->naming : Naming::kUpstream;
  return Assemble<Config>(std::string(name), path, std::move(part.files), naming,
                          [&](const TensorFiles& tensors, const std::string& where,
                              Problems& problems) -> std::optional<Config> {
                            if (!tensors.problems.empty()) return std::nullopt;
                            if (recognised.ok()) return read(naming, tensors, where, problems);
                            problems.push_back(recognised.status());
                            return std::nullopt;
                          });
}

Component<TransformerConfig> MakeTransformer(std::string_view name, ReadPart part,
                                             const std::optional<TransformerConfig>& like) {
  return MakeNamed<TransformerConfig>(
      name, ComponentKind::kTransformer, std::move(part),
      [&](Naming naming, const TensorFiles& files, const std::string& where, Problems& problems) {
        return ReadTransformerShapes(naming, files, where, like, problems);
      });
}

Component<TextEncoderConfig> MakeTextEncoder(ReadPart part) {
  return MakeNamed<TextEncoderConfig>(
      NameOf(ModelComponent::kTextEncoder), ComponentKind::kTextEncoder, std::move(part),
      [](Naming, const TensorFiles& files, const std::string& where, Problems& problems) {
        return ReadOriginalTextEncoder(files, where, problems);
      });
}

Component<VaeConfig> MakeVae(ReadPart part) {
  return MakeNamed<VaeConfig>(NameOf(ModelComponent::kVae), ComponentKind::kVae, std::move(part),
                              ReadVaeShapes);
}

Component<TinyDecoderConfig> MakeTinyDecoder(ReadPart part) {
  return MakeNamed<TinyDecoderConfig>(
      NameOf(ModelPart::kTinyDecoder), ComponentKind::kTinyDecoder, std::move(part),
      [](Naming, const TensorFiles& files, const std::string& where, Problems& problems) {
        return ReadTinyDecoderShapes(files, where, problems);
      });
}

// Returns whether `source` names all needed parts, and only parts that go together. Otherwise adds
// a problem.
bool CheckNamed(const ModelSource& source, CheckpointParts& parts) {
  const auto named = [&](ModelPart part) { return !source.PathOf(part).empty(); };
  const bool experts = named(ModelPart::kHighNoise) || named(ModelPart::kLowNoise);
  const auto refuse = [&](const char* what) {
    parts.problems.push_back(absl::InvalidArgumentError(what));
    return false;
  };
  if (named(ModelPart::kTransformer) && experts) {
    return refuse(
        "transformer: is named beside transformer.high or transformer.low; name either "
        "transformer, for a model with one expert, or the other two");
  }
  if (named(ModelPart::kTransformer) && parts.transformers.size() == 2) {
    return refuse(
        "transformer: is named, but the model in the folder has two experts; name "
        "transformer.high or transformer.low");
  }
  if (experts && parts.transformers.size() == 1) {
    return refuse(
        "transformer.high or transformer.low: is named, but the model in the folder has one "
        "expert; name transformer");
  }
  if (!source.base.empty()) return true;
  std::vector<std::string> missing;
  for (const ModelPart part : kModelParts) {
    const bool expert = part == ModelPart::kHighNoise || part == ModelPart::kLowNoise;
    const bool optional = part == ModelPart::kTinyDecoder;
    const bool needed =
        expert ? experts : !optional && (part != ModelPart::kTransformer || !experts);
    if (needed && !named(part)) missing.emplace_back(NameOf(part));
  }
  if (missing.empty()) return true;
  parts.problems.push_back(absl::NotFoundError(
      absl::StrCat(absl::StrJoin(missing, ", "), ": not named; name the ",
                   missing.size() == 1 ? "file" : "files", ", for example ", missing.front(),
                   "=FILE, or the folder of a checkpoint that has the rest (path=FOLDER)")));
  return false;
}

void ReplaceTransformers(const ModelSource& source, CheckpointParts& parts) {
  std::optional<TransformerConfig> like;
  if (!parts.transformers.empty()) like = parts.transformers.front().config;
  const bool one =
      source.PathOf(ModelPart::kHighNoise).empty() && source.PathOf(ModelPart::kLowNoise).empty();
  const size_t count = one ? 1 : 2;
  if (parts.transformers.size() < count) parts.transformers.resize(count);
  for (size_t i = 0; i < count; ++i) {
    const ModelPart part = one      ? ModelPart::kTransformer
                           : i == 0 ? ModelPart::kHighNoise
                                    : ModelPart::kLowNoise;
    const std::string path = source.PathOf(part);
    const std::string_view name = NameOf(TransformerComponent(static_cast<int>(i)));
    if (!path.empty()) {
      parts.transformers[i] = MakeTransformer(name, ReadPart(path), like);
      // The folder's pipeline class says how the folder's transformers were distilled.
      parts.pipeline_class.clear();
    } else if (parts.transformers[i].name.empty()) {
      parts.transformers[i].name = std::string(name);
    }
  }
}

// Returns the family whose transformers have these channels and whose number of experts is
// `experts`. If several families fit, the width decides.
const ModelFamily* FamilyOfComponents(const TransformerConfig& transformer, const VaeConfig& vae,
                                      size_t experts) {
  const ModelFamily* nearest = nullptr;
  const auto distance = [&](const ModelFamily& family) {
    return std::abs(family.published.dim - transformer.dim);
  };
  for (const ModelFamily& family : ModelFamilies()) {
    const int64_t condition = family.ConditionChannels(vae.z_dim, vae.stride_temporal);
    if (family.experts.size() != experts || family.vae != vae.kind ||
        transformer.in_channels != vae.z_dim + condition) {
      continue;
    }
    if (nearest == nullptr || distance(family) < distance(*nearest)) nearest = &family;
  }
  return nearest;
}

// Finds the family that the components fit.
void SetFamily(CheckpointParts& parts) {
  if (!parts.vae.config.has_value() || parts.transformers.empty()) return;
  const std::optional<TransformerConfig>& transformer = parts.transformers.front().config;
  if (!transformer.has_value()) return;
  const size_t experts = parts.transformers.size();
  const ModelFamily* const family = FamilyOfComponents(*transformer, *parts.vae.config, experts);
  if (family == nullptr) {
    const ModelFamily* const other =
        FamilyOfComponents(*transformer, *parts.vae.config, 3 - experts);
    parts.problems.push_back(Unsupported(
        parts.transformers.front().where,
        absl::StrCat("takes ", transformer->in_channels, " channels and gives ",
                     transformer->out_channels, ", which no supported model with ", experts,
                     experts == 1 ? " expert" : " experts", " and a ",
                     std::string(NameOf(parts.vae.config->kind)), " VAE does",
                     other == nullptr ? ""
                     : experts == 1   ? absl::StrCat("; for ", std::string(NameOf(other->id)),
                                                     " name both experts (transformer.high=FILE,"
                                                       "transformer.low=FILE)")
                                      : absl::StrCat("; for ", std::string(NameOf(other->id)),
                                                     " name one (transformer=FILE)"))));
    return;
  }
  for (Component<TransformerConfig>& expert : parts.transformers) {
    if (expert.config.has_value()) expert.config->model_type = std::string(family->upstream_type);
  }
  if (parts.family != family->id || !parts.expert_boundary.has_value()) {
    parts.expert_boundary = family->expert_boundary;
  }
  parts.family = family->id;
}

// Returns the path of the tiny decoder that `source` names, or of a published tiny decoder's file
// in the model's folder; empty if there is neither.
std::string TinyDecoderPath(const ModelSource& source, const CheckpointParts& parts) {
  std::string named = source.PathOf(ModelPart::kTinyDecoder);
  if (!named.empty() || parts.folder.empty() || !parts.vae.config.has_value()) return named;
  const char* const version = parts.vae.config->kind == VaeKind::kWan21 ? "2_1" : "2_2";
  for (const char* const maker : {"taew", "lighttaew"}) {
    for (const char* const extension : {".safetensors", ".pth"}) {
      const fs::path path = fs::path(parts.folder) / absl::StrCat(maker, version, extension);
      if (IsGiven(path.string())) return path.string();
    }
  }
  return "";
}

}  // namespace

void PutTogether(const ModelSource& source, CheckpointParts& parts) {
  if (!CheckNamed(source, parts)) return;
  parts.layout = Layout::kFiles;
  ReplaceTransformers(source, parts);
  parts.text_encoder.name = std::string(NameOf(ModelComponent::kTextEncoder));
  parts.vae.name = std::string(NameOf(ModelComponent::kVae));
  if (const std::string path = source.PathOf(ModelPart::kTextEncoder); !path.empty()) {
    parts.text_encoder = MakeTextEncoder(ReadPart(path));
  }
  if (const std::string path = source.PathOf(ModelPart::kVae); !path.empty()) {
    parts.vae = MakeVae(ReadPart(path));
  }
  SetFamily(parts);
}

void AddTinyDecoder(const ModelSource& source, CheckpointParts& parts) {
  const std::string path = TinyDecoderPath(source, parts);
  if (path.empty()) return;
  parts.names_tiny_decoder = !source.PathOf(ModelPart::kTinyDecoder).empty();
  parts.tiny_decoder = MakeTinyDecoder(ReadPart(path));
  const std::optional<TinyDecoderConfig>& tiny = parts.tiny_decoder.config;
  if (!tiny.has_value() || !parts.vae.config.has_value()) return;
  VaeConfig& vae = *parts.vae.config;
  if (tiny->z_dim != vae.z_dim || tiny->stride_spatial() != vae.stride_spatial ||
      vae.stride_temporal != TinyDecoderConfig::kStrideTemporal) {
    parts.tiny_decoder.problems.push_back(Damaged(
        path, absl::StrCat("is a tiny decoder that makes ", tiny->stride_spatial(), "x",
                           tiny->stride_spatial(), " pixels of ", tiny->z_dim,
                           " channels; must make ", vae.stride_spatial, "x", vae.stride_spatial,
                           " of ", vae.z_dim, ", as the model's VAE does")));
    return;
  }
  if (parts.vae.weights == nullptr || parts.tiny_decoder.weights == nullptr) return;
  if (parts.vae.weights->IsSynthetic()) {
    parts.tiny_decoder.problems.push_back(Unsupported(
        path, "is named beside a synthetic model, whose VAE has no files; name a checkpoint"));
    return;
  }
  parts.vae.weights =
      JoinWeights(std::move(parts.vae.weights), std::move(parts.tiny_decoder.weights));
  vae.tiny_decoder = tiny;
}

std::string TokenizerPath(const ModelSource& source) {
  const std::string path = source.PathOf(ModelPart::kTokenizer);
  std::error_code error;
  return fs::is_directory(path, error) ? (fs::path(path) / "spiece.model").string() : path;
}

CheckpointParts ReadComponentParts(const std::string& path) {
  CheckpointParts parts;
  parts.path = path;
  parts.layout = Layout::kFiles;
  ReadPart part(path);
  if (!part.recognised.ok()) {
    parts.problems = part.files.problems;
    if (parts.problems.empty()) parts.problems.push_back(part.recognised.status());
    return parts;
  }
  switch (part.recognised->kind) {
    case ComponentKind::kTransformer:
      parts.transformers.push_back(
          MakeTransformer(NameOf(ModelComponent::kTransformer), std::move(part), std::nullopt));
      break;
    case ComponentKind::kTextEncoder:
      parts.text_encoder = MakeTextEncoder(std::move(part));
      break;
    case ComponentKind::kVae:
      parts.vae = MakeVae(std::move(part));
      break;
    case ComponentKind::kTinyDecoder:
      parts.names_tiny_decoder = true;
      parts.tiny_decoder = MakeTinyDecoder(std::move(part));
      break;
  }
  return parts;
}

}  // namespace wan
