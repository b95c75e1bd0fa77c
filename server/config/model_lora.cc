#include "server/config/model_lora.h"

#include <algorithm>
#include <cctype>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "proto/lora_schedule_text.h"
#include "server/conversion/convert.h"

namespace wan::server {
namespace {

std::string NamesOf(const std::vector<ModelSpec>& models) {
  if (models.empty()) return "none";
  return absl::StrJoin(models, ", ",
                       [](std::string* out, const ModelSpec& model) { out->append(model.name); });
}

}  // namespace

bool IsName(std::string_view name) {
  constexpr size_t kLongest = 63;
  return !name.empty() && name.size() <= kLongest &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return std::isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '_' || c == '-';
         });
}

absl::StatusOr<ModelLora> ParseModelLora(std::string_view text) {
  const size_t equals = text.find('=');
  std::string_view key = text.substr(0, equals);
  ModelLora lora;
  if (equals != std::string_view::npos) lora.source.path = text.substr(equals + 1);
  const size_t slash = key.find('/');
  bool good = slash != 0;
  if (slash != std::string_view::npos) {
    lora.model = key.substr(0, slash);
    key.remove_prefix(slash + 1);
    good = IsName(lora.model);
  }
  if (const size_t at = key.find('@'); at != std::string_view::npos) {
    lora.source.expert = ParseExpert(key.substr(at + 1));
    key = key.substr(0, at);
    good = good && (lora.source.expert == ExpertRole::kHighNoise ||
                    lora.source.expert == ExpertRole::kLowNoise);
  }
  lora.source.name = key;
  if (good && IsName(key) && !lora.source.path.empty()) return lora;
  return absl::InvalidArgumentError(absl::StrCat(
      "is '", std::string(text),
      "'; must be [MODEL/]NAME[@EXPERT]=PATH with names of 1 to 63 letters, digits, '.', '_' "
      "and "
      "'-', the expert high or low, and a safetensors file or a folder that PEFT wrote"));
}

std::string ToString(const ModelLora& lora) {
  const LoraSource& source = lora.source;
  return absl::StrCat(lora.model, lora.model.empty() ? "" : "/", source.name,
                      source.expert ? absl::StrCat("@", std::string(NameOf(*source.expert))) : "",
                      "=", source.path);
}

absl::StatusOr<LoraScheduleSetting> ParseLoraScheduleSetting(std::string_view text) {
  const size_t equals = text.find('=');
  std::string_view key = text.substr(0, equals);
  LoraScheduleSetting setting;
  if (const size_t slash = key.find('/'); slash != std::string_view::npos) {
    setting.model = key.substr(0, slash);
    key.remove_prefix(slash + 1);
    if (!IsName(setting.model)) key = {};
  }
  setting.name = key;
  if (!IsName(key) || equals == std::string_view::npos) {
    return absl::InvalidArgumentError(absl::StrCat(
        "is '", std::string(text),
        "'; must be [MODEL/]NAME=SCHEDULE with names of 1 to 63 letters, digits, '.', '_' and "
        "'-', for example a14b/fast=steps:4,shift:5,boundary_step:2"));
  }
  setting.text = text.substr(equals + 1);
  const absl::StatusOr<wan::v1::LoraSchedule> schedule = wan::ParseLoraSchedule(setting.text);
  if (!schedule.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("of ", setting.name, " ", schedule.status().message()));
  }
  setting.schedule = ToLoraSchedule(*schedule);
  return setting;
}

std::string ToString(const LoraScheduleSetting& setting) {
  return absl::StrCat(setting.model, setting.model.empty() ? "" : "/", setting.name, "=",
                      setting.text);
}

LoraFolderSetting ParseLoraFolder(std::string_view text) {
  const size_t equals = text.find('=');
  if (equals != std::string_view::npos && IsName(text.substr(0, equals))) {
    return {std::string(text.substr(0, equals)), std::string(text.substr(equals + 1))};
  }
  return {"", std::string(text)};
}

absl::Status AssignSchedules(const std::vector<LoraScheduleSetting>& schedules, bool has_folders,
                             std::vector<ModelSpec>& models) {
  for (const LoraScheduleSetting& setting : schedules) {
    bool known = setting.model.empty();
    bool found = false;
    for (ModelSpec& model : models) {
      if (!setting.model.empty() && setting.model != model.name) continue;
      known = true;
      for (LoraSource& lora : model.loras) {
        if (lora.name != setting.name) continue;
        lora.schedule = setting.schedule;
        found = true;
      }
    }
    if (!known) {
      return absl::InvalidArgumentError(absl::StrCat("lora_schedules has '", ToString(setting),
                                                     "' for the unknown model '", setting.model,
                                                     "'; the models are: ", NamesOf(models)));
    }
    if (found || has_folders) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "lora_schedules has '", ToString(setting), "', but no LoRA of loras has the name '",
        setting.name, "'", setting.model.empty() ? "" : absl::StrCat(" for ", setting.model)));
  }
  return absl::OkStatus();
}

absl::Status AssignLoras(const std::vector<ModelLora>& loras, std::vector<ModelSpec>& models) {
  for (ModelSpec& model : models) model.loras.clear();
  for (const ModelLora& lora : loras) {
    if (lora.model.empty() && models.size() > 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("loras has '", lora.source.name, "' without its model; write MODEL/",
                       lora.source.name, " with one of ", NamesOf(models)));
    }
    const auto found = std::find_if(models.begin(), models.end(), [&](const ModelSpec& model) {
      return lora.model.empty() || model.name == lora.model;
    });
    if (found == models.end()) {
      return absl::InvalidArgumentError(absl::StrCat("loras has '", lora.source.name,
                                                     "' for the unknown model '", lora.model,
                                                     "'; the models are: ", NamesOf(models)));
    }
    found->loras.push_back(lora.source);
  }
  return absl::OkStatus();
}

}  // namespace wan::server
