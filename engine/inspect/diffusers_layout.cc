#include "engine/inspect/diffusers_layout.h"

#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/api/timestep_rounding.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/checkpoint/expected_tensors.h"
#include "engine/checkpoint/step_ratios_file.h"
#include "engine/families/model_family.h"
#include "engine/formats/safetensors_writer.h"

namespace wan {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

absl::Status WriteJson(const fs::path& path, const Json& json) {
  std::ofstream file(path);
  file << json.dump(2) << "\n";
  file.close();
  if (file) return absl::OkStatus();
  return absl::ErrnoToStatus(errno, absl::StrCat(path.string(), ": cannot be written"));
}

absl::Status CopyFile(const fs::path& from, const fs::path& to) {
  std::error_code error;
  fs::copy_file(from, to, error);
  if (!error) return absl::OkStatus();
  return absl::ErrnoToStatus(error.value(), absl::StrCat(to.string(), ": cannot be written"));
}

// Writes the folder of a component, with its weights and its config.
absl::Status WriteComponent(const fs::path& folder, const char* stem,
                            const std::vector<TensorSpec>& specs, const WeightSource& weights,
                            const Json& config) {
  std::vector<SafetensorsTensor> tensors;
  std::vector<std::shared_ptr<const void>> owners;
  for (const TensorSpec& spec : specs) {
    const TensorInfo* const info = weights.Find(spec.name);
    if (info == nullptr) return absl::InternalError(absl::StrCat("no tensor ", spec.name));
    const absl::StatusOr<TensorBytes> bytes = weights.Read(*info);
    if (!bytes.ok()) return bytes.status();
    if (bytes->decoder != nullptr) {
      return absl::FailedPreconditionError(absl::StrCat(
          info->file, ": tensor ", info->name, " is stored as ", info->stored_as,
          "; only tensors in F32, F16 and BF16 can be copied to the layout of diffusers"));
    }
    tensors.push_back(
        {spec.diffusers_name, std::string(DTypeName(info->dtype)), info->shape, bytes->bytes});
    owners.push_back(bytes->owner);
  }
  std::error_code error;
  fs::create_directories(folder, error);
  // Without this entry, the transformers library refuses the file.
  if (absl::Status status = WriteSafetensors((folder / absl::StrCat(stem, ".safetensors")).string(),
                                             tensors, {{"format", "pt"}});
      !status.ok()) {
    return status;
  }
  return WriteJson(folder / "config.json", config);
}

Json ConfigOf(const TransformerConfig& config) {
  return {{"_class_name", "WanTransformer3DModel"},
          {"attention_head_dim", config.dim / config.num_heads},
          {"cross_attn_norm", config.cross_attn_norm},
          {"eps", config.eps},
          {"ffn_dim", config.ffn_dim},
          {"freq_dim", config.freq_dim},
          {"in_channels", config.in_channels},
          {"num_attention_heads", config.num_heads},
          {"num_layers", config.num_layers},
          {"out_channels", config.out_channels},
          {"patch_size", config.patch_size},
          {"qk_norm", config.qk_norm ? Json("rms_norm_across_heads") : Json(nullptr)},
          {"rope_max_seq_len", 1024},
          {"text_dim", config.text_dim}};
}

Json ConfigOf(const TextEncoderConfig& config) {
  return {{"architectures", {"UMT5EncoderModel"}},
          {"d_ff", config.ffn_dim},
          {"d_kv", config.head_dim},
          {"d_model", config.dim},
          {"eos_token_id", 1},
          {"feed_forward_proj", "gated-gelu"},
          {"is_encoder_decoder", true},
          {"layer_norm_epsilon", 1e-6},
          {"model_type", "umt5"},
          {"num_decoder_layers", config.num_layers},
          {"num_heads", config.num_heads},
          {"num_layers", config.num_layers},
          {"pad_token_id", 0},
          {"relative_attention_max_distance", 128},
          {"relative_attention_num_buckets", config.num_buckets},
          {"vocab_size", config.vocab_size}};
}

Json ConfigOf(const VaeConfig& config) {
  const int64_t pixels = 3 * config.patch_size * config.patch_size;
  const bool residual = config.kind == VaeKind::kWan22;
  Json json = {{"_class_name", "AutoencoderKLWan"},
               {"attn_scales", Json::array()},
               {"base_dim", config.base_dim},
               {"decoder_base_dim", config.decoder_base_dim},
               {"dim_mult", config.dim_mult},
               {"in_channels", pixels},
               {"is_residual", residual},
               {"latents_mean", config.latents_mean},
               {"latents_std", config.latents_std},
               {"num_res_blocks", config.num_res_blocks},
               {"out_channels", pixels},
               {"patch_size", residual ? Json(config.patch_size) : Json(nullptr)},
               {"scale_factor_spatial", config.stride_spatial},
               {"scale_factor_temporal", config.stride_temporal},
               {"temperal_downsample", config.temporal_downsample},
               {"z_dim", config.z_dim}};
  return json;
}

// Returns the content of scheduler_config.json, which includes its class name.
Json Scheduler(const Checkpoint& checkpoint) {
  if (const std::optional<FewStepConfig>& few_step = checkpoint.few_step(); few_step.has_value()) {
    Json json = {{"_class_name", "FlowMatchEulerDiscreteScheduler"},
                 {"denoising_step_list", few_step->timesteps},
                 {"num_train_timesteps", 1000},
                 {"shift", few_step->shift}};
    if (few_step->solver == "lcm") json["stochastic_sampling"] = true;
    if (few_step->rounding != TimestepRounding::kNone) {
      json["timestep_rounding"] = std::string(NameOf(few_step->rounding));
    }
    if (few_step->boundary_step_index.has_value()) {
      json["boundary_step_index"] = *few_step->boundary_step_index;
    }
    return json;
  }
  double shift = FindModelFamily(checkpoint.family()).sampling.shift;
  const std::optional<GenerationDefaults>& defaults = checkpoint.generation_defaults();
  if (defaults.has_value()) shift = defaults->shift.value_or(shift);
  return {{"_class_name", "UniPCMultistepScheduler"},
          {"flow_shift", shift},
          {"num_train_timesteps", 1000},
          {"prediction_type", "flow_prediction"},
          {"solver_order", 2},
          {"solver_type", "bh2"},
          {"use_flow_sigmas", true}};
}

Json ModelIndex(const Checkpoint& checkpoint, const std::string& scheduler) {
  const bool two = checkpoint.num_experts() == 2;
  const Json transformer = {"diffusers", "WanTransformer3DModel"};
  const ModelFamily& family = FindModelFamily(checkpoint.family());
  return {{"_class_name", std::string(family.diffusers_class)},
          {"boundary_ratio", two ? Json(*checkpoint.expert_boundary()) : Json(nullptr)},
          {"expand_timesteps", family.image == ImageRole::kFirstFrame},
          {"scheduler", {"diffusers", scheduler}},
          {"text_encoder", {"transformers", "UMT5EncoderModel"}},
          {"tokenizer", {"transformers", "T5Tokenizer"}},
          {"transformer", transformer},
          {"transformer_2", two ? transformer : Json({nullptr, nullptr})},
          {"vae", {"diffusers", "AutoencoderKLWan"}}};
}

absl::Status WriteSmallFiles(const Checkpoint& checkpoint, const fs::path& root) {
  std::error_code error;
  for (const char* const folder : {"scheduler", "tokenizer"}) {
    fs::create_directories(root / folder, error);
  }
  const Json scheduler = Scheduler(checkpoint);
  absl::Status status = WriteJson(root / "scheduler" / "scheduler_config.json", scheduler);
  if (status.ok()) {
    status =
        WriteJson(root / "tokenizer" / "tokenizer_config.json", {{"tokenizer_class", "T5Tokenizer"},
                                                                 {"eos_token", "</s>"},
                                                                 {"extra_ids", 0},
                                                                 {"pad_token", "<pad>"},
                                                                 {"unk_token", "<unk>"}});
  }
  if (status.ok()) {
    status = CopyFile(checkpoint.tokenizer_path(), root / "tokenizer" / "spiece.model");
  }
  const fs::path defaults = fs::path(checkpoint.folder()) / "generation_defaults.json";
  if (status.ok() && checkpoint.generation_defaults().has_value()) {
    status = CopyFile(defaults, root / defaults.filename());
  }
  if (status.ok() && checkpoint.step_ratios().has_value()) {
    status = CopyFile(fs::path(checkpoint.folder()) / kStepRatiosFile, root / kStepRatiosFile);
  }
  if (!status.ok()) return status;
  // Write this file last, because a folder that contains it counts as a checkpoint.
  return WriteJson(root / "model_index.json",
                   ModelIndex(checkpoint, scheduler["_class_name"].get<std::string>()));
}

}  // namespace

absl::Status WriteDiffusersLayout(const std::string& from, const std::string& to) {
  const absl::StatusOr<std::unique_ptr<Checkpoint>> opened = Checkpoint::Open(from);
  if (!opened.ok()) return opened.status();
  const Checkpoint& checkpoint = **opened;
  if (checkpoint.layout() == Layout::kSynthetic) {
    return absl::FailedPreconditionError(absl::StrCat(from, " has no weights to be written"));
  }
  const fs::path root = to;
  std::error_code error;
  if (fs::exists(root, error) && !fs::is_empty(root, error)) {
    return absl::AlreadyExistsError(absl::StrCat(to, ": is not empty; give a new folder"));
  }
  absl::Status status;
  for (int expert = 0; expert < checkpoint.num_experts() && status.ok(); ++expert) {
    const TransformerConfig& config = checkpoint.transformer_config(expert);
    status = WriteComponent(root / (expert == 0 ? "transformer" : "transformer_2"),
                            "diffusion_pytorch_model", ExpectedTensors(config),
                            checkpoint.transformer(expert), ConfigOf(config));
  }
  if (status.ok()) {
    const TextEncoderConfig& config = checkpoint.text_encoder_config();
    status = WriteComponent(root / "text_encoder", "model", ExpectedTensors(config),
                            checkpoint.text_encoder(), ConfigOf(config));
  }
  if (status.ok()) {
    const VaeConfig& config = checkpoint.vae_config();
    status = WriteComponent(root / "vae", "diffusion_pytorch_model", ExpectedTensors(config),
                            checkpoint.vae(), ConfigOf(config));
  }
  return status.ok() ? WriteSmallFiles(checkpoint, root) : status;
}

}  // namespace wan
