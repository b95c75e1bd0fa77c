#include "engine/inspect/checkpoint_report.h"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "engine/api/file_problem.h"
#include "engine/checkpoint/checkpoint_parts.h"
#include "engine/checkpoint/component_files.h"
#include "engine/checkpoint/put_together.h"
#include "engine/text/tokenizer.h"

namespace wan {
namespace {

// ordered_json keeps members in the order in which they were added, so that dimensions appear from
// the outermost to the innermost.
using Json = nlohmann::ordered_json;

Json Dimensions(const TransformerConfig& config) {
  return {{"model_type", config.model_type},
          {"dim", config.dim},
          {"ffn_dim", config.ffn_dim},
          {"freq_dim", config.freq_dim},
          {"num_heads", config.num_heads},
          {"num_layers", config.num_layers},
          {"in_channels", config.in_channels},
          {"out_channels", config.out_channels},
          {"text_dim", config.text_dim},
          {"text_len", config.text_len},
          {"patch_size", config.patch_size},
          {"eps", config.eps},
          {"cross_attn_norm", config.cross_attn_norm},
          {"qk_norm", config.qk_norm}};
}

Json Dimensions(const TextEncoderConfig& config) {
  return {{"dim", config.dim},
          {"ffn_dim", config.ffn_dim},
          {"num_heads", config.num_heads},
          {"head_dim", config.head_dim},
          {"num_layers", config.num_layers},
          {"num_buckets", config.num_buckets},
          {"vocab_size", config.vocab_size}};
}

Json Dimensions(const VaeConfig& config) {
  return {{"kind", std::string(NameOf(config.kind))},
          {"z_dim", config.z_dim},
          {"base_dim", config.base_dim},
          {"decoder_base_dim", config.decoder_base_dim},
          {"dim_mult", config.dim_mult},
          {"num_res_blocks", config.num_res_blocks},
          {"temporal_downsample", config.temporal_downsample},
          {"patch_size", config.patch_size},
          {"stride_spatial", config.stride_spatial},
          {"stride_temporal", config.stride_temporal}};
}

Json Dimensions(const TinyDecoderConfig& config) {
  return {{"z_dim", config.z_dim},
          {"widths", config.widths},
          {"patch_size", config.patch_size},
          {"denormalises", config.denormalises}};
}

Json NullIfEmpty(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

Json Describe(const FewStepConfig& config) {
  Json description = {{"timesteps", config.timesteps},
                      {"shift", config.shift},
                      {"solver", config.solver},
                      {"timestep_rounding", std::string(NameOf(config.rounding))},
                      {"recognised", NullIfEmpty(config.recognised)}};
  if (config.boundary_step_index.has_value()) {
    description["boundary_step_index"] = *config.boundary_step_index;
  }
  return description;
}

Json Describe(const GenerationDefaults& defaults) {
  Json description = Json::object();
  const auto set = [&](const char* name, const auto& value) {
    if (value.has_value()) description[name] = *value;
  };
  set("width", defaults.width);
  set("height", defaults.height);
  set("num_frames", defaults.num_frames);
  set("fps", defaults.fps);
  set("steps", defaults.steps);
  if (!defaults.guidance_scale.empty()) description["guidance_scale"] = defaults.guidance_scale;
  set("shift", defaults.shift);
  set("solver", defaults.solver);
  set("negative_prompt", defaults.negative_prompt);
  return description;
}

Json Messages(const std::vector<absl::Status>& problems) {
  Json messages = Json::array();
  for (const absl::Status& problem : problems) messages.push_back(std::string(problem.message()));
  return messages;
}

class Totals {
 public:
  void Add(const std::string& name, const std::vector<int64_t>& shape, uint64_t bytes) {
    ++tensors_;
    parameters_ += ElementCount(shape).value_or(0);
    bytes_ += bytes;
    dtypes_[name] = dtypes_.value(name, 0) + 1;
  }

  void WriteTo(Json& component) const {
    component["tensors"] = tensors_;
    component["parameters"] = parameters_;
    component["bytes"] = bytes_;
    component["dtypes"] = dtypes_;
  }

 private:
  int64_t tensors_ = 0;
  int64_t parameters_ = 0;
  uint64_t bytes_ = 0;
  Json dtypes_ = Json::object();
};

// Returns the form in which a file keeps the tensor: a dtype, or the name of its blocks.
std::string FormOf(const StoredTensor& tensor) {
  return std::string(tensor.decoder != nullptr ? tensor.decoder->name() : DTypeName(tensor.dtype));
}

template <typename Config>
Json Describe(const Component<Config>& component) {
  Totals totals;
  Json files = Json::array();
  for (const TensorFile& file : component.files.files) {
    files.push_back(file.path);
    for (const StoredTensor& tensor : file.tensors) {
      totals.Add(FormOf(tensor), tensor.shape, tensor.bytes.size());
    }
  }
  if (component.files.files.empty() && component.weights != nullptr) {  // A synthetic component has
                                                                        // tensors, but no files.
    for (const TensorInfo& tensor : component.weights->Tensors()) {
      totals.Add(tensor.stored_as, tensor.shape, tensor.bytes);
    }
  }
  Json description = {{"name", component.name},
                      {"file", component.where},
                      {"files", std::move(files)},
                      {"dimensions", nullptr},
                      {"problems", Messages(component.problems)}};
  if (component.config.has_value()) description["dimensions"] = Dimensions(*component.config);
  totals.WriteTo(description);
  return description;
}

std::string TextOr(const Json& value, std::string_view otherwise) {
  return value.is_null() ? std::string(otherwise) : value.get<std::string>();
}

std::string BytesText(uint64_t bytes) {
  if (bytes < 1024) return absl::StrCat(bytes, " B");
  double value = static_cast<double>(bytes);
  const char* unit = "";
  for (const char* const next : {"KiB", "MiB", "GiB", "TiB"}) {
    if (value < 1024) break;
    value /= 1024;
    unit = next;
  }
  return absl::StrFormat("%.2f %s", value, unit);
}

void AppendComponent(std::string& text, const Json& component) {
  std::vector<std::string> dtypes;
  for (const auto& [name, tensors] : component["dtypes"].items()) {
    dtypes.push_back(absl::StrCat(tensors.get<int64_t>(), " ", name));
  }
  absl::StrAppend(&text, "\n", component["name"].get<std::string>(), "\n  file        ",
                  component["file"].get<std::string>());
  if (component["files"].size() > 1) {
    absl::StrAppend(&text, " (", component["files"].size(), " shards)");
  }
  absl::StrAppend(&text, "\n  tensors     ", component["tensors"].get<int64_t>(), " (",
                  dtypes.empty() ? "none" : absl::StrJoin(dtypes, ", "), "), ",
                  component["parameters"].get<int64_t>(), " parameters, ",
                  BytesText(component["bytes"].get<uint64_t>()), "\n");
  if (component["dimensions"].is_null()) {
    text += "  dimensions  unknown\n";
    return;
  }
  std::vector<std::string> dimensions;
  for (const auto& [name, value] : component["dimensions"].items()) {
    dimensions.push_back(
        absl::StrCat(name, " ", value.is_string() ? value.get<std::string>() : value.dump()));
  }
  // Lines are wrapped at this width, so that they fit into a terminal.
  constexpr size_t kWidth = 88;
  std::string line = "  dimensions ";
  for (size_t i = 0; i < dimensions.size(); ++i) {
    if (line.size() + dimensions[i].size() > kWidth) {
      absl::StrAppend(&text, line, "\n");
      line = "             ";
    }
    absl::StrAppend(&line, " ", dimensions[i], i + 1 < dimensions.size() ? "," : "");
  }
  absl::StrAppend(&text, line, "\n");
}

// A tokenizer's file that does not exist is a problem already.
void AddTokenizerProblem(CheckpointParts& parts) {
  const std::string& path = parts.tokenizer_path;
  if (path.empty() || !CheckPath(path, PathKind::kFile).ok()) return;
  const absl::Status loaded = Tokenizer::Load(path).status();
  if (!loaded.ok()) parts.problems.push_back(loaded);
}

}  // namespace

Json InspectCheckpoint(const std::string& path) {
  CheckpointParts parts = IsTensorFile(path) ? ReadComponentParts(path) : ReadCheckpointParts(path);
  AddTokenizerProblem(parts);
  const bool usable = AllProblems(parts).empty();
  Json report = {{"path", parts.path},
                 {"ok", usable && parts.tiny_decoder.problems.empty()},
                 {"usable", usable},
                 {"layout", nullptr},
                 {"model", parts.family.has_value() ? Json(std::string(NameOf(*parts.family)))
                                                    : Json(nullptr)},
                 {"expert_boundary", nullptr},
                 {"few_step", nullptr},
                 {"generation_defaults", nullptr},
                 {"step_ratios", nullptr},
                 {"tokenizer", NullIfEmpty(parts.tokenizer_path)},
                 {"components", Json::array()},
                 {"problems", Messages(parts.problems)}};
  if (parts.layout.has_value()) report["layout"] = std::string(LayoutName(*parts.layout));
  if (parts.expert_boundary.has_value()) report["expert_boundary"] = *parts.expert_boundary;
  if (parts.few_step.has_value()) report["few_step"] = Describe(*parts.few_step);
  if (parts.generation_defaults.has_value()) {
    report["generation_defaults"] = Describe(*parts.generation_defaults);
  }
  if (const std::optional<StepRatios>& ratios = parts.step_ratios; ratios.has_value()) {
    report["step_ratios"] = {{"solver", ratios->solver},
                             {"steps", ratios->steps},
                             {"shift", ratios->shift},
                             {"guidance_scale", ratios->guidance_scale}};
  }
  for (const Component<TransformerConfig>& transformer : parts.transformers) {
    report["components"].push_back(Describe(transformer));
  }
  // The report has no transformer if the layout is unknown, if an index is missing so that nothing
  // was read, or if `path` names a single component.
  const bool whole = !parts.transformers.empty() && !IsTensorFile(path);
  if (whole || !parts.text_encoder.where.empty()) {
    report["components"].push_back(Describe(parts.text_encoder));
  }
  if (whole || !parts.vae.where.empty()) report["components"].push_back(Describe(parts.vae));
  if (!parts.tiny_decoder.where.empty()) {
    report["components"].push_back(Describe(parts.tiny_decoder));
  }
  return report;
}

std::string ReportText(const Json& report) {
  std::string text = absl::StrCat("checkpoint    ", report["path"].get<std::string>(),      //
                                  "\nlayout        ", TextOr(report["layout"], "unknown"),  //
                                  "\nmodel         ", TextOr(report["model"], "unknown"),   //
                                  "\ntokenizer     ", TextOr(report["tokenizer"], "none"), "\n");
  if (!report["expert_boundary"].is_null()) {
    absl::StrAppend(&text, "experts       2: high noise (transformer), low noise (transformer_2); ",
                    "boundary ", report["expert_boundary"].get<double>(), "\n");
  }
  if (const Json& few_step = report["few_step"]; !few_step.is_null()) {
    absl::StrAppend(&text, "few steps     timesteps ", few_step["timesteps"].dump(), ", shift ",
                    few_step["shift"].get<double>(), ", solver ",
                    few_step["solver"].get<std::string>());
    if (few_step.contains("boundary_step_index")) {
      absl::StrAppend(&text, ", low noise from step ", few_step["boundary_step_index"].get<int>());
    }
    text += "\n";
    if (!few_step["recognised"].is_null()) {
      absl::StrAppend(&text, "recognised    ", few_step["recognised"].get<std::string>(), "\n");
    }
  }
  if (const Json& defaults = report["generation_defaults"]; !defaults.is_null()) {
    absl::StrAppend(&text, "defaults      ", defaults.dump(), "\n");
  }
  if (const Json& ratios = report["step_ratios"]; !ratios.is_null()) {
    absl::StrAppend(&text, "step ratios   ", ratios.dump(), "\n");
  }
  std::vector<std::string> problems = report["problems"].get<std::vector<std::string>>();
  for (const Json& component : report["components"]) {
    AppendComponent(text, component);
    for (const Json& problem : component["problems"]) problems.push_back(problem);
  }
  if (problems.empty()) return absl::StrCat(text, "\ncomplete: nothing is missing or wrong\n");
  absl::StrAppend(&text, "\n", problems.size(), problems.size() == 1 ? " problem" : " problems",
                  ":\n");
  for (const std::string& problem : problems) absl::StrAppend(&text, "  ", problem, "\n");
  if (report["usable"].get<bool>()) {
    text += "\nThe model can be used without its tiny decoder; decoder: tiny is refused.\n";
  }
  return text;
}

}  // namespace wan
