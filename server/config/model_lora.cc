#include "server/config/model_lora.h"

#include <algorithm>
#include <cctype>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace wan::server {

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

absl::Status AssignLoras(const std::vector<ModelLora>& loras, std::vector<ModelSpec>& models) {
  for (ModelSpec& model : models) model.loras.clear();
  for (const ModelLora& lora : loras) {
    const std::string known = absl::StrJoin(
        models, ", ", [](std::string* out, const ModelSpec& model) { out->append(model.name); });
    if (lora.model.empty() && models.size() > 1) {
      return absl::InvalidArgumentError(absl::StrCat("loras has '", lora.source.name,
                                                     "' without its model; write MODEL/",
                                                     lora.source.name, " with one of ", known));
    }
    const auto found = std::find_if(models.begin(), models.end(), [&](const ModelSpec& model) {
      return lora.model.empty() || model.name == lora.model;
    });
    if (found == models.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("loras has '", lora.source.name, "' for the unknown model '", lora.model,
                       "'; the models are: ", known.empty() ? "none" : known));
    }
    found->loras.push_back(lora.source);
  }
  return absl::OkStatus();
}

}  // namespace wan::server
