#include "server/config/engine_settings.h"

#include <optional>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "engine/api/exact_blocks.h"
#include "engine/api/model_source.h"
#include "server/config/setting_kinds.h"

namespace wan::server {
namespace {

absl::StatusOr<std::vector<DeviceGroup>> ReadGroups(const SettingValues& values) {
  std::vector<DeviceGroup> groups;
  for (const std::string& value : values) {
    absl::StatusOr<DeviceGroup> group = ParseDeviceGroup(value);
    if (!group.ok()) return group.status();
    groups.push_back(*std::move(group));
  }
  if (absl::Status status = CheckDeviceGroups(groups); !status.ok()) return status;
  return groups;
}

absl::Status SetDevices(const SettingValues& values, ServerConfig& config) {
  const absl::StatusOr<std::vector<DeviceGroup>> groups = ReadGroups(values);
  if (!groups.ok()) return groups.status();
  if (groups->empty()) return absl::InvalidArgumentError("is an empty list; must name a device");
  config.devices.clear();
  for (const DeviceGroup& group : *groups) {
    if (!group.models.empty()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "is '", ToString(group), "'; write a group with its models into groups (--group)"));
    }
    config.devices.push_back(ToString(group));
  }
  return absl::OkStatus();
}

absl::Status SetGroups(const SettingValues& values, ServerConfig& config) {
  absl::StatusOr<std::vector<DeviceGroup>> groups = ReadGroups(values);
  if (!groups.ok()) return groups.status();
  config.groups = *std::move(groups);
  return absl::OkStatus();
}

SettingValues GetGroups(const ServerConfig& config) {
  SettingValues values;
  for (const DeviceGroup& group : config.groups) values.push_back(ToString(group));
  return values;
}

absl::Status CheckDtype(const std::string& dtype) {
  return dtype == "fp32" || dtype == "bf16" ? absl::OkStatus() : MustBe(dtype, "fp32 or bf16");
}

absl::Status CheckH264Preset(const std::string& preset) {
  return IsH264Preset(preset)
             ? absl::OkStatus()
             : MustBe(preset, absl::StrCat("one of ", absl::StrJoin(kH264Presets, ", ")));
}

std::vector<std::pair<std::string, std::optional<VaePrecision>>> VaePrecisionWords() {
  std::vector<std::pair<std::string, std::optional<VaePrecision>>> words;
  for (const VaePrecision precision : kVaePrecisions) {
    words.emplace_back(NameOf(precision), precision);
  }
  return words;
}

absl::Status SetModels(const SettingValues& values, ServerConfig& config) {
  std::vector<ModelSpec> models;
  std::set<std::string> names;
  for (const std::string& value : values) {
    const size_t equals = value.find('=');
    ModelSpec model;
    model.name = value.substr(0, equals);
    if (equals != std::string::npos) model.path = value.substr(equals + 1);
    if (!IsName(model.name) || model.path.empty()) {
      return MustBe(value,
                    "NAME=PATH with a name of 1 to 63 letters, digits, '.', '_' and '-', and a "
                    "checkpoint's folder, files of its parts (transformer.high=FILE,"
                    "transformer.low=FILE,text_encoder=FILE,vae=FILE,tokenizer=FILE) or "
                    "synthetic:ti2v-5b");
    }
    if (const auto source = ParseModelSource(model.path); !source.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat(model.name, ": ", std::string(source.status().message())));
    }
    if (!names.insert(model.name).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("names '", model.name, "' twice; each model needs a name of its own"));
    }
    models.push_back(std::move(model));
  }
  config.models = std::move(models);
  return absl::OkStatus();
}

SettingValues GetModels(const ServerConfig& config) {
  SettingValues values;
  for (const ModelSpec& model : config.models) values.push_back(model.name + "=" + model.path);
  return values;
}

absl::Status SetLoras(const SettingValues& values, ServerConfig& config) {
  std::vector<ModelLora> loras;
  std::set<std::string> keys;
  for (const std::string& value : values) {
    absl::StatusOr<ModelLora> lora = ParseModelLora(value);
    if (!lora.ok()) return lora.status();
    std::string key = ToString(*lora);
    key.resize(key.find('='));
    if (!keys.insert(key).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("names '", key, "' twice; each LoRA needs a name of its own"));
    }
    loras.push_back(*std::move(lora));
  }
  config.loras = std::move(loras);
  return absl::OkStatus();
}

SettingValues GetLoras(const ServerConfig& config) {
  SettingValues values;
  for (const ModelLora& lora : config.loras) values.push_back(ToString(lora));
  return values;
}

absl::Status SetLoraSchedules(const SettingValues& values, ServerConfig& config) {
  std::vector<LoraScheduleSetting> schedules;
  for (const std::string& value : values) {
    absl::StatusOr<LoraScheduleSetting> schedule = ParseLoraScheduleSetting(value);
    if (!schedule.ok()) return schedule.status();
    schedules.push_back(*std::move(schedule));
  }
  config.lora_schedules = std::move(schedules);
  return absl::OkStatus();
}

SettingValues GetLoraSchedules(const ServerConfig& config) {
  SettingValues values;
  for (const LoraScheduleSetting& setting : config.lora_schedules) {
    values.push_back(ToString(setting));
  }
  return values;
}

absl::Status SetEightBitWeights(const SettingValues& values, ServerConfig& config) {
  EightBitWeights weights;
  for (const std::string& value : values) {
    if (!SetEightBitPart(value, weights)) return MustBe(value, "transformers or text_encoder");
  }
  config.engine.eight_bit_weights = weights;
  return absl::OkStatus();
}

SettingValues GetEightBitWeights(const ServerConfig& config) {
  return NamesOf(config.engine.eight_bit_weights);
}

absl::Status SetExactBlocks(const SettingValues& values, ServerConfig& config) {
  absl::StatusOr<ExactBlocks> blocks = ExactBlocks::Parse(absl::StrJoin(values, ","));
  if (!blocks.ok()) return blocks.status();
  config.engine.quality_exact_blocks = *std::move(blocks);
  return absl::OkStatus();
}

SettingValues GetExactBlocks(const ServerConfig& config) {
  const std::string text = config.engine.quality_exact_blocks.ToString();
  if (text.empty()) return {};
  return absl::StrSplit(text, ',');
}

absl::Status SetResidency(const SettingValues& values, ServerConfig& config) {
  std::vector<ComponentResidency> policies;
  for (const std::string& value : values) {
    const std::optional<ComponentResidency> entry = ParseComponentResidency(value);
    if (!entry.has_value()) {
      return MustBe(value,
                    "COMPONENT=POLICY with text_encoder, transformer, transformer_2 or vae, and "
                    "auto, resident, host, stream, disk or cpu");
    }
    for (const ComponentResidency& other : policies) {
      if (other.component == entry->component) {
        return absl::InvalidArgumentError(absl::StrCat("names ",
                                                       std::string(NameOf(entry->component)),
                                                       " twice; give each component one policy"));
      }
    }
    policies.push_back(*entry);
  }
  config.engine.residency = std::move(policies);
  return absl::OkStatus();
}

SettingValues GetResidency(const ServerConfig& config) {
  SettingValues values;
  for (const ComponentResidency& entry : config.engine.residency) {
    values.push_back(absl::StrCat(std::string(NameOf(entry.component)), "=",
                                  std::string(ResidencyPolicyName(entry.policy))));
  }
  return values;
}

Setting QualitySetting() {
  return ChoiceSetting<std::optional<Quality>>(
      "quality", "exact|high|fast",
      "how exactly videos are computed, unless a request states it; high: "
      "8 bits in products and attention; fast: also reused steps; unset: exact, or high where "
      "eight_bit_weights names transformers",
      Setting::Form::kText, &EngineOptions::quality,
      {{"exact", Quality::kExact}, {"high", Quality::kHigh}, {"fast", Quality::kFast}});
}

Setting VaePrecisionSetting() {
  return ChoiceSetting<std::optional<VaePrecision>>(
      "vae_precision", "fp32|tf32|fp16|bf16",
      "precision in which the video autoencoder computes, unless a request states one; "
      "unset: fp32 with dtype fp32, else fp16",
      Setting::Form::kText, &EngineOptions::vae_precision, VaePrecisionWords());
}

}  // namespace

// A row for each setting. NOLINTNEXTLINE(readability-function-size)
std::vector<Setting> EngineSettings() {
  using E = EngineOptions;
  return {
      {"models", "NAME=PATH",
       "models to load: the name that requests use, and a checkpoint's folder, files of its parts "
       "(transformer.high=FILE,vae=FILE,...) or synthetic:ti2v-5b; unset: the demo model",
       Setting::Form::kMap, SetModels, GetModels},
      {"loras", "[MODEL/]NAME[@EXPERT]=PATH",
       "LoRAs that requests may use: a safetensors file or a folder that PEFT wrote; @high or "
       "@low chooses one of two experts",
       Setting::Form::kMap, SetLoras, GetLoras},
      TextsSetting("lora_dirs", "[MODEL=]DIR",
                   "folders whose LoRAs are registered with every model that they fit, or with "
                   "MODEL, whenever a model is loaded",
                   "a folder", &ServerConfig::lora_dirs),
      {"lora_schedules", "[MODEL/]NAME=SCHEDULE",
       "the steps for which a LoRA was distilled, such as steps:4,shift:5,boundary_step:2, or "
       "none; unset: those of known LoRAs",
       Setting::Form::kMap, SetLoraSchedules, GetLoraSchedules},
      {"device", "cpu|cuda:N[,N]",
       "devices of a group, which make one video together; each further --device is another "
       "group, which makes a video of its own at the same time",
       Setting::Form::kTexts, SetDevices, DevicesOf},
      {"groups", "DEVICE[=MODEL,MODEL]",
       "the same with the models that a group may have; unset: every group may have every model",
       Setting::Form::kGroups, SetGroups, GetGroups},
      TextSetting("dtype", "fp32|bf16",
                  "dtype in which models compute; unset: fp32 on the CPU, bf16 on a GPU", &E::dtype,
                  CheckDtype),
      QualitySetting(),
      {"quality_exact_blocks", "N|N-M|last",
       "transformer blocks, from 0, that compute exactly in videos of quality high and fast; "
       "'wan_bench forward --compare quality' finds the blocks that lose most",
       Setting::Form::kTexts, SetExactBlocks, GetExactBlocks},
      RatioSetting("guidance_until",
                   "share of its steps after which a fast video runs without guidance, in half the "
                   "time a step; 1: never",
                   &E::guidance_until),
      {"eight_bit_weights", "transformers|text_encoder",
       "weights that are kept in 8 bits, in about half of the memory: transformers (only for "
       "videos of quality high or fast), text_encoder",
       Setting::Form::kTexts, SetEightBitWeights, GetEightBitWeights},
      VaePrecisionSetting(),
      SwitchSetting("record_forwards",
                    "replay recorded forwards of videos that are so small that a GPU waits for "
                    "launches; the results have the same bits",
                    &E::record_forwards),
      ChoiceSetting<GuidanceBatching>(
          "guidance_batching", "auto|batched|split",
          "compute both forwards of a guided step in one batch, where memory allows it, or one "
          "after the other (split); auto: in one batch where that is faster",
          Setting::Form::kText, &E::guidance_batching,
          {{"auto", GuidanceBatching::kAuto},
           {"batched", GuidanceBatching::kBatched},
           {"split", GuidanceBatching::kSplit}}),
      TextSetting("h264_preset", "ultrafast|superfast|veryfast|faster|fast",
                  "libx264's preset for MP4 files: faster ones leave the processors more time",
                  &H264Options::preset, CheckH264Preset),
      IntegerSetting("h264_crf", "constant rate factor of MP4 files: lower is better and larger",
                     &H264Options::crf, kBestH264Crf, kWorstH264Crf),
      IntegerSetting("cpu_threads",
                     "number of threads that compute one operator on the CPU; 0: one for each core",
                     &E::cpu_threads, 0, 4096),
      BytesSetting(
          "device_memory_limit",
          "most device memory that the process uses, for example 24GiB; 0: all that is free",
          &E::device_memory_limit),
      SwitchSetting("gpm",
                    "measure SM activity with the driver's GPM counters (Hopper and later); false: "
                    "report NVML's utilisation instead",
                    &E::gpm),
      {"residency_policies", "COMPONENT=POLICY",
       "where the weights of text_encoder, transformer, transformer_2 or vae live: auto, resident, "
       "host, stream, disk or cpu; unset: auto",
       Setting::Form::kMap, SetResidency, GetResidency},
  };
}

}  // namespace wan::server
