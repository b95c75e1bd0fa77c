#include "engine/checkpoint/checkpoint_parts.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/api/file_problem.h"
#include "engine/api/model_source.h"
#include "engine/checkpoint/component_assembly.h"
#include "engine/checkpoint/component_files.h"
#include "engine/checkpoint/config_reader.h"
#include "engine/checkpoint/distillation.h"
#include "engine/checkpoint/expected_tensors.h"
#include "engine/checkpoint/family_choice.h"
#include "engine/checkpoint/few_step_config.h"
#include "engine/checkpoint/foreign_models.h"
#include "engine/checkpoint/generation_defaults.h"
#include "engine/checkpoint/put_together.h"
#include "engine/checkpoint/step_ratios_file.h"
#include "engine/checkpoint/synthetic_models.h"
#include "engine/checkpoint/weight_tables.h"
#include "engine/families/model_family.h"
#include "engine/formats/file_errors.h"
#include "engine/formats/json_text.h"

namespace wan {
namespace {

namespace fs = std::filesystem;
using Problems = std::vector<absl::Status>;

constexpr std::string_view kSyntheticScheme = "synthetic:";
// The name, without extension, of the file with the weights of a transformer or of diffusers' VAE.
constexpr std::string_view kDiffusionStem = "diffusion_pytorch_model";

bool Exists(const fs::path& path) { return IsGiven(path.string()); }

bool LooksLikeCheckpoint(const fs::path& folder) {
  return Exists(folder / "model_index.json") || Exists(folder / "config.json") ||
         Exists(folder / "high_noise_model");
}

// Returns the end of an error message, which suggests the folder that the user probably meant by
// `path`; empty if no such folder is found.
std::string Instead(const fs::path& path) {
  std::error_code error;
  const fs::path parent = fs::absolute(path, error).parent_path();
  if (fs::is_regular_file(path, error) && LooksLikeCheckpoint(parent)) {
    return absl::StrCat("; give its folder ", parent.string());
  }
  // In Hugging Face's cache, the folder of a model has one folder for each revision.
  for (fs::directory_iterator entry(path / "snapshots", error), end; !error && entry != end;
       entry.increment(error)) {
    if (LooksLikeCheckpoint(entry->path())) {
      return absl::StrCat("; it is a folder of Hugging Face's cache: give ",
                          entry->path().string());
    }
  }
  return "";
}

// `part` is the name of the file's part of the model.
void AddFile(CheckpointParts& parts, std::string_view part, const std::string& path,
             const FileVersion& version, FileUse use = FileUse::kEveryJob) {
  std::string name =
      parts.folder.empty() ? "" : fs::path(path).lexically_relative(parts.folder).generic_string();
  if (name.empty() || name.starts_with("..")) {
    name = absl::StrCat(std::string(part), "/", fs::path(path).filename().string());
  }
  parts.files.push_back({std::move(name), path, version, use});
}

// Records the version of the file. Call NoteFile before the file is read, so that a later change of
// the file is noticed. NoteFile ignores a missing file, because the code that reads the file
// reports it.
void NoteFile(CheckpointParts& parts, const fs::path& path, FileUse use = FileUse::kEveryJob) {
  const absl::StatusOr<FileVersion> version = FileVersion::Of(path.string());
  if (version.ok()) AddFile(parts, "", path.string(), *version, use);
}

template <typename Config>
void AddWeights(CheckpointParts& parts, const Component<Config>& component,
                FileUse use = FileUse::kEveryJob) {
  for (const TensorFile& file : component.files.files) {
    AddFile(parts, component.name, file.path, file.file->version(), use);
  }
}

// Adds the weight files to the files that were recorded so far, and sorts all of them.
void CompleteFiles(CheckpointParts& parts) {
  for (const Component<TransformerConfig>& transformer : parts.transformers) {
    AddWeights(parts, transformer);
  }
  AddWeights(parts, parts.text_encoder);
  AddWeights(parts, parts.vae, FileUse::kVae);
  const std::optional<VaeConfig>& vae = parts.vae.config;
  if (vae.has_value() && vae->tiny_decoder.has_value()) {
    AddWeights(parts, parts.tiny_decoder, FileUse::kTinyDecoder);
  }
  std::sort(parts.files.begin(), parts.files.end(),
            [](const ModelFile& a, const ModelFile& b) { return a.name < b.name; });
}

// Returns the path of the folder's file whose name is that of a published distilled transformer;
// empty if the folder has none, or several.
std::string DistilledFile(const fs::path& folder) {
  std::vector<std::string> found;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string extension = entry->path().extension().string();
    if ((extension == ".safetensors" || extension == ".pth" || extension == ".pt") &&
        IsDistilledFileName(entry->path().filename().string())) {
      found.push_back(entry->path().string());
    }
  }
  return found.size() == 1 ? found.front() : "";
}

// Reads the tensors of `stem`.safetensors in a folder, from a single file or from shards. If the
// folder has no such file, reads its DistilledFile.
std::pair<std::string, TensorFiles> ReadSafetensorsFolder(CheckpointParts& parts,
                                                          const fs::path& folder,
                                                          std::string_view stem) {
  const std::string whole = (folder / absl::StrCat(std::string(stem), ".safetensors")).string();
  const std::string index = absl::StrCat(whole, ".index.json");
  if (Exists(index)) {
    NoteFile(parts, index);
    return {index, ReadComponentFiles(index)};
  }
  std::string path = whole;
  if (!Exists(whole)) {
    if (std::string distilled = DistilledFile(folder); !distilled.empty()) {
      path = std::move(distilled);
    }
  }
  return {path, ReadComponentFiles(path)};
}

// Sets the path of the tokenizer, unless it is set.
void SetTokenizer(CheckpointParts& parts, const fs::path& path) {
  if (!parts.tokenizer_path.empty()) return;
  parts.tokenizer_path = path.string();
  const absl::StatusOr<FileVersion> version = FileVersion::Of(parts.tokenizer_path);
  if (version.ok()) AddFile(parts, NameOf(ModelPart::kTokenizer), parts.tokenizer_path, *version);
  absl::Status readable = CheckPath(parts.tokenizer_path, PathKind::kFile);
  if (!readable.ok()) parts.problems.push_back(std::move(readable));
}

// In upstream's layout the name of the VAE's file depends on its kind. For an unknown family,
// returns the kind of the first family that has the same number of experts.
VaeKind UpstreamVaeKind(const CheckpointParts& parts) {
  if (parts.family.has_value()) return FindModelFamily(*parts.family).vae;
  for (const ModelFamily& family : ModelFamilies()) {
    if (family.experts.size() == parts.transformers.size()) return family.vae;
  }
  return VaeKind::kWan22;
}

void ReadOriginal(CheckpointParts& parts) {
  const fs::path root = parts.folder;
  parts.layout = Layout::kOriginal;
  const bool single = Exists(root / "config.json");
  const std::vector<fs::path> folders =
      single ? std::vector{root} : std::vector{root / "high_noise_model", root / "low_noise_model"};
  for (const fs::path& folder : folders) {
    auto [where, files] = ReadSafetensorsFolder(parts, folder, kDiffusionStem);
    const std::string config_path = (folder / "config.json").string();
    NoteFile(parts, config_path);
    parts.transformers.push_back(Assemble<TransformerConfig>(
        parts.transformers.empty() ? "transformer" : "transformer_2", std::move(where),
        std::move(files), Naming::kUpstream,
        [&](const TensorFiles& tensors, const std::string& file, Problems& problems) {
          return ReadOriginalTransformer(config_path, tensors, file, problems);
        }));
    const std::optional<TransformerConfig>& config = parts.transformers.back().config;
    if (!config.has_value()) continue;
    const std::string& type = config->model_type;
    const ModelFamily* const family = FamilyOfType(type, folders.size(), *config);
    if (family == nullptr) {
      parts.problems.push_back(Unsupported(
          config_path, absl::StrCat("model_type \"", Printable(type), "\" with ", folders.size(),
                                    " expert(s) is not one of the supported ",
                                    AllOf(&ModelFamily::upstream_type, " and "))));
    } else if (!parts.family.has_value()) {
      parts.family = family->id;
    }
  }
  const std::string text_path = (root / "models_t5_umt5-xxl-enc-bf16.pth").string();
  parts.text_encoder =
      Assemble<TextEncoderConfig>("text_encoder", text_path, ReadComponentFiles(text_path),
                                  Naming::kUpstream, ReadOriginalTextEncoder);
  const VaeKind kind = UpstreamVaeKind(parts);
  const std::string vae_path =
      (root / absl::StrCat("Wan", std::string(NameOf(kind)), "_VAE.pth")).string();
  parts.vae = Assemble<VaeConfig>(
      "vae", vae_path, ReadComponentFiles(vae_path), Naming::kUpstream,
      [&](const TensorFiles& tensors, const std::string& file, Problems& problems) {
        return ReadOriginalVae(kind, tensors, file, problems);
      });
  SetTokenizer(parts, root / "google" / "umt5-xxl" / "spiece.model");
  if (parts.family.has_value()) {
    parts.expert_boundary = FindModelFamily(*parts.family).expert_boundary;
  }
  NoteFile(parts, root / "few_step.json");
  parts.few_step = ReadOriginalFewStep((root / "few_step.json").string(), parts.problems);
}

// model_index.json lists a component as [library, class]; [null, null] stands for a component that
// the model does not have.
bool HasComponent(const nlohmann::json& index, const char* name) {
  const auto found = index.find(name);
  return found != index.end() && found->is_array() && !found->empty() && !found->front().is_null();
}

struct ModelIndex {
  bool two_experts = false;
  std::vector<const ModelFamily*> families;  // the families that fit the index
};

// Reads the fields of model_index.json that concern the whole model; adds problems to `fields`.
ModelIndex ReadModelIndex(const nlohmann::json& json, JsonFields& fields, CheckpointParts& parts) {
  parts.pipeline_class = fields.Text("_class_name");
  const std::string& pipeline = parts.pipeline_class;
  const std::span<const ModelFamily> all = ModelFamilies();
  if (!pipeline.empty() && pipeline != kFastWanPipeline &&
      std::none_of(all.begin(), all.end(),
                   [&](const ModelFamily& family) { return family.diffusers_class == pipeline; })) {
    fields.Refuse(absl::StrCat("the pipeline is a ", Printable(pipeline), ", expected ",
                               AllOf(&ModelFamily::diffusers_class, " or ")));
  }
  ModelIndex index;
  index.two_experts = HasComponent(json, "transformer_2");
  const size_t experts = index.two_experts ? 2 : 1;
  std::optional<bool> expands;
  if (fields.Has("expand_timesteps")) expands = fields.Bool("expand_timesteps");
  // FastWan's programs do not read "expand_timesteps".
  if (pipeline != kFastWanPipeline) expands = expands.value_or(false);
  index.families = FamiliesOfIndex(experts, expands);
  if (index.families.empty()) {
    fields.Refuse("has both transformer_2 and expand_timesteps, which no Wan2.2 model has");
    // Continue as if expand_timesteps were false, so that further problems are found.
    index.families = FamiliesOfIndex(experts, /*expands_timesteps=*/false);
  }
  if (index.two_experts && fields.Has("boundary_ratio")) {
    parts.expert_boundary = fields.Number("boundary_ratio");
    if (*parts.expert_boundary <= 0 || *parts.expert_boundary >= 1) {
      fields.AddProblem(absl::StrCat("\"boundary_ratio\" is ", *parts.expert_boundary,
                                     ", expected between 0 and 1"));
    }
  }
  return index;
}

void ReadDiffusers(CheckpointParts& parts) {
  const fs::path root = parts.folder;
  const std::string index_path = (root / "model_index.json").string();
  parts.layout = Layout::kDiffusers;
  for (const char* const file :
       {"model_index.json", "transformer/config.json", "text_encoder/config.json",
        "vae/config.json", "scheduler/scheduler_config.json"}) {
    NoteFile(parts, root / file);
  }
  const absl::StatusOr<nlohmann::json> json = ReadJsonObject(index_path);
  if (!json.ok()) {
    parts.problems.push_back(json.status());
    return;
  }
  JsonFields fields(*json, index_path);
  const ModelIndex index = ReadModelIndex(*json, fields, parts);

  const auto read_transformer = [&](const char* name) {
    auto [where, files] = ReadSafetensorsFolder(parts, root / name, kDiffusionStem);
    parts.transformers.push_back(Assemble<TransformerConfig>(
        name, std::move(where), std::move(files), Naming::kDiffusers,
        [&](const TensorFiles&, const std::string&, Problems& problems) {
          return ReadDiffusersTransformer((root / name / "config.json").string(), problems);
        }));
  };
  read_transformer("transformer");
  if (index.two_experts) {
    NoteFile(parts, root / "transformer_2" / "config.json");
    read_transformer("transformer_2");
  }

  if (const ModelFamily* const family =
          FamilyAmong(index.families, parts.transformers.front().config);
      family != nullptr) {
    parts.family = family->id;
    for (Component<TransformerConfig>& transformer : parts.transformers) {
      if (transformer.config.has_value()) transformer.config->model_type = family->upstream_type;
    }
    if (!parts.expert_boundary.has_value()) parts.expert_boundary = family->expert_boundary;
  }
  auto [text_where, text_files] = ReadSafetensorsFolder(parts, root / "text_encoder", "model");
  parts.text_encoder = Assemble<TextEncoderConfig>(
      "text_encoder", std::move(text_where), std::move(text_files), Naming::kDiffusers,
      [&](const TensorFiles&, const std::string&, Problems& problems) {
        return ReadDiffusersTextEncoder((root / "text_encoder" / "config.json").string(), problems);
      });
  auto [vae_where, vae_files] = ReadSafetensorsFolder(parts, root / "vae", kDiffusionStem);
  parts.vae = Assemble<VaeConfig>(
      "vae", std::move(vae_where), std::move(vae_files), Naming::kDiffusers,
      [&](const TensorFiles&, const std::string&, Problems& problems) {
        return ReadDiffusersVae((root / "vae" / "config.json").string(), problems);
      });
  SetTokenizer(parts, root / "tokenizer" / "spiece.model");
  parts.few_step =
      ReadDiffusersFewStep((root / "scheduler" / "scheduler_config.json").string(), parts.problems);
  parts.problems.insert(parts.problems.end(), fields.problems().begin(), fields.problems().end());
}

void ReadSynthetic(CheckpointParts& parts, std::string_view name) {
  parts.layout = Layout::kSynthetic;
  const absl::StatusOr<SyntheticModel> model = FindSyntheticModel(name);
  if (!model.ok()) {
    parts.problems.push_back(model.status());
    return;
  }
  const auto fill = [&](auto& component, const char* component_name, const auto& config,
                        DType dtype, uint64_t seed = 0) {
    component.name = component_name;
    component.where = parts.path;
    component.config = config;
    component.weights = MakeSyntheticWeights(ExpectedTensors(config), dtype, parts.path, seed);
  };
  const ModelFamily& family = FindModelFamily(model->family);
  parts.family = family.id;
  parts.expert_boundary = family.expert_boundary;
  fill(parts.transformers.emplace_back(), "transformer", model->transformer,
       model->transformer_dtype);
  if (family.experts.size() == 2) {
    fill(parts.transformers.emplace_back(), "transformer_2", model->transformer,
         model->transformer_dtype, /*seed=*/1);
  }
  fill(parts.text_encoder, "text_encoder", model->text_encoder, model->text_encoder_dtype);
  fill(parts.vae, "vae", model->vae, model->vae_dtype);
}

// Returns UNIMPLEMENTED if a transformer belongs to a known model that the engine does not support.
// Such a model may resemble a supported one.
absl::Status CheckNotForeign(const CheckpointParts& parts) {
  for (const Component<TransformerConfig>& transformer : parts.transformers) {
    for (const TensorFile& file : transformer.files.files) {
      std::set<std::string, std::less<>> names;
      for (const StoredTensor& tensor : file.tensors) names.insert(tensor.name);
      const std::string foreign = NameForeignModel(names);
      if (!foreign.empty()) return Unsupported(file.path, foreign);
    }
  }
  return absl::OkStatus();
}

// Removes all problems except `problem`, which names an unsupported kind of model. Such a model
// also causes many other problems, which would hide the real one.
void KeepOnly(const absl::Status& problem, CheckpointParts& parts) {
  for (Component<TransformerConfig>& transformer : parts.transformers) {
    transformer.problems.clear();
  }
  parts.text_encoder.problems.clear();
  parts.vae.problems.clear();
  parts.tiny_decoder.problems.clear();
  parts.problems = {problem};
}

// Checks that the components fit together and form a model.
void CheckTogether(CheckpointParts& parts) {
  if (parts.few_step.has_value() && parts.few_step->boundary_step_index.has_value() &&
      parts.transformers.size() == 1) {
    parts.problems.push_back(
        Damaged(parts.path, "boundary_step_index is set, but there is only one expert"));
  }
  if (!parts.text_encoder.config.has_value() || !parts.vae.config.has_value()) return;
  const TextEncoderConfig& text = *parts.text_encoder.config;
  const VaeConfig& vae = *parts.vae.config;
  const auto require = [&](const std::string& where, bool holds, const std::string& what) {
    if (!holds) parts.problems.push_back(Damaged(where, what));
  };
  if (parts.family.has_value()) {
    require(parts.vae.where, vae.kind == FindModelFamily(*parts.family).vae,
            absl::StrCat("is a ", std::string(NameOf(vae.kind)), " VAE, which ",
                         std::string(NameOf(*parts.family)), " does not have"));
  }
  for (const Component<TransformerConfig>& transformer : parts.transformers) {
    if (!transformer.config.has_value()) continue;
    const TransformerConfig& config = *transformer.config;
    require(transformer.where, config.text_dim == text.dim,
            absl::StrCat("takes text of width ", config.text_dim, ", but the text encoder gives ",
                         text.dim));
    require(transformer.where, config.out_channels == vae.z_dim,
            absl::StrCat("gives ", config.out_channels, " channels, but the VAE has ", vae.z_dim));
    const int64_t condition =
        parts.family.has_value()
            ? FindModelFamily(*parts.family).ConditionChannels(vae.z_dim, vae.stride_temporal)
            : 0;
    require(
        transformer.where, config.in_channels == vae.z_dim + condition,
        absl::StrCat("takes ", config.in_channels, " channels, expected ", vae.z_dim + condition));
    const std::optional<TransformerConfig>& first = parts.transformers.front().config;
    require(transformer.where, !first.has_value() || *first == config,
            "differs in its dimensions from the other expert");
  }
}

// Describes the file at a path where the folder of a checkpoint should be.
absl::Status DescribeFile(const std::string& path) {
  TensorFiles files = ReadComponentFiles(path);
  if (!files.problems.empty()) return files.problems.front();
  const absl::StatusOr<Recognised> recognised = RecogniseComponent(path, files);
  if (!recognised.ok()) return recognised.status();
  return absl::FailedPreconditionError(absl::StrCat(
      path, ": is only the ", std::string(NameOf(recognised->kind)),
      " of a model; name all parts, for example transformer.high=FILE,transformer.low=FILE,"
      "text_encoder=FILE,vae=FILE,tokenizer=FILE, or a folder and what replaces its parts, for "
      "example path=FOLDER,vae=FILE"));
}

// Reads the checkpoint in parts.folder.
void ReadFolder(CheckpointParts& parts) {
  const std::string& path = parts.folder;
  const fs::path root = path;
  absl::Status folder;
  if (std::string_view name = path; name.starts_with(kSyntheticScheme)) {
    name.remove_prefix(kSyntheticScheme.size());
    ReadSynthetic(parts, name);
  } else if (IsTensorFile(path) && !LooksLikeCheckpoint(root.parent_path())) {
    parts.problems.push_back(DescribeFile(path));
  } else if (folder = CheckPath(path, PathKind::kFolder); !folder.ok()) {
    parts.problems.push_back(
        absl::Status(folder.code(), absl::StrCat(folder.message(), Instead(root))));
  } else if (Exists(root / "model_index.json")) {
    ReadDiffusers(parts);
  } else if (Exists(root / "config.json") || Exists(root / "high_noise_model")) {
    ReadOriginal(parts);
  } else {
    parts.problems.push_back(Absent(path,
                                    "is not a checkpoint: it has neither upstream's layout "
                                    "(config.json or high_noise_model) nor "
                                    "that of diffusers (model_index.json)" +
                                        Instead(root)));
  }
}

}  // namespace

CheckpointParts ReadCheckpointParts(const std::string& path) {
  CheckpointParts parts;
  parts.path = path;
  const absl::StatusOr<ModelSource> source = ParseModelSource(path);
  if (!source.ok()) {
    parts.problems.push_back(source.status());
    return parts;
  }
  parts.folder = source->base;
  if (const std::string tokenizer = TokenizerPath(*source); !tokenizer.empty()) {
    SetTokenizer(parts, tokenizer);
  }
  if (!source->base.empty()) ReadFolder(parts);
  const bool has_folder = parts.layout == Layout::kOriginal || parts.layout == Layout::kDiffusers;
  if (!source->parts.empty()) PutTogether(*source, parts);
  AddTinyDecoder(*source, parts);
  if (has_folder) {
    const fs::path root = parts.folder;
    NoteFile(parts, root / "generation_defaults.json");
    parts.generation_defaults =
        ReadGenerationDefaults((root / "generation_defaults.json").string(), parts.problems);
    if (parts.family.has_value()) {
      NoteFile(parts, root / kStepRatiosFile, FileUse::kStepRatios);
      parts.step_ratios = ReadStepRatios((root / kStepRatiosFile).string(),
                                         FindModelFamily(*parts.family), parts.problems);
    }
  }
  if (!parts.few_step.has_value()) {
    parts.few_step = RecogniseDistillation(parts, parts.problems);
  }
  CheckTogether(parts);
  if (absl::Status status = CheckNotForeign(parts); !status.ok()) KeepOnly(status, parts);
  CompleteFiles(parts);
  return parts;
}

std::vector<absl::Status> AllProblems(const CheckpointParts& parts) {
  Problems all = parts.problems;
  const auto append = [&](const Problems& problems) {
    all.insert(all.end(), problems.begin(), problems.end());
  };
  for (const Component<TransformerConfig>& transformer : parts.transformers) {
    append(transformer.problems);
  }
  append(parts.text_encoder.problems);
  append(parts.vae.problems);
  if (parts.names_tiny_decoder) append(parts.tiny_decoder.problems);
  return all;
}

}  // namespace wan
