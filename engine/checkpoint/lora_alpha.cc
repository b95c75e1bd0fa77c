#include "engine/checkpoint/lora_alpha.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/formats/file_errors.h"
#include "engine/formats/json_text.h"

namespace wan {
namespace {

using nlohmann::json;

// diffusers' key in a file's metadata, and what it writes before the settings of a component.
constexpr const char kMetadataKey[] = "lora_adapter_metadata";
constexpr const char kComponentPrefix[] = "transformer.";

// The settings as one object without prefixes; empty if there are none.
absl::StatusOr<json> FindSettings(const TensorFile& file, const std::string& config_path,
                                  std::string& where) {
  const auto found = file.metadata.find(kMetadataKey);
  if (found == file.metadata.end()) {
    if (config_path.empty()) return json::object();
    where = config_path;
    return ReadJsonObject(config_path);
  }
  where = absl::StrCat(file.path, ": ", kMetadataKey);
  absl::StatusOr<json> settings = ParseJson(found->second, where);
  if (!settings.ok()) return settings.status();
  if (!settings->is_object()) return Damaged(where, "is not a JSON object");
  json plain = json::object();
  for (const auto& [key, value] : settings->items()) {
    const bool prefixed = key.starts_with(kComponentPrefix);
    plain[prefixed ? key.substr(sizeof(kComponentPrefix) - 1) : key] = value;
  }
  return plain;
}

bool IsSet(const json& settings, const char* key) {
  const auto found = settings.find(key);
  return found != settings.end() && !found->is_null();
}

absl::StatusOr<bool> Flag(const json& settings, const char* key, const std::string& where) {
  if (!IsSet(settings, key)) return false;
  if (!settings[key].is_boolean())
    return Damaged(where, absl::StrCat(key, " is not true or false"));
  return settings[key].get<bool>();
}

}  // namespace

absl::StatusOr<LoraAlpha> LoraAlpha::Read(const TensorFile& file, const std::string& config_path) {
  std::string where;
  const absl::StatusOr<json> settings = FindSettings(file, config_path, where);
  if (!settings.ok()) return settings.status();

  LoraAlpha alpha;
  const absl::StatusOr<bool> rank_stabilised = Flag(*settings, "use_rslora", where);
  if (!rank_stabilised.ok()) return rank_stabilised.status();
  alpha.rank_stabilised_ = *rank_stabilised;
  const absl::StatusOr<bool> dora = Flag(*settings, "use_dora", where);
  if (!dora.ok()) return dora.status();
  if (*dora) return Unsupported(where, "use_dora is true, but only LoRA is supported");
  if (IsSet(*settings, "peft_type") && (*settings)["peft_type"] != "LORA") {
    return Unsupported(where, "peft_type is not LORA, but only LoRA is supported");
  }
  if (IsSet(*settings, "lora_alpha")) {
    const json& value = (*settings)["lora_alpha"];
    if (!value.is_number()) return Damaged(where, "lora_alpha is not a number");
    alpha.alpha_ = value.get<double>();
  }
  if (IsSet(*settings, "alpha_pattern")) {
    const json& patterns = (*settings)["alpha_pattern"];
    if (!patterns.is_object()) return Damaged(where, "alpha_pattern is not an object");
    for (const auto& [module, value] : patterns.items()) {
      if (!value.is_number()) {
        return Damaged(where,
                       absl::StrCat("alpha_pattern of ", Printable(module), " is not a number"));
      }
      if (module.find_first_of("*+?[](){}|\\^$") != std::string::npos) {
        return Unsupported(
            where, absl::StrCat("alpha_pattern has the regular expression ", Printable(module),
                                "; only names of modules are supported"));
      }
      alpha.patterns_.push_back({module, value.get<double>()});
    }
  }
  return alpha;
}

double LoraAlpha::Factor(std::string_view module, std::optional<double> stored,
                         int64_t rank) const {
  const double r = static_cast<double>(rank);
  double alpha = stored.value_or(alpha_.value_or(r));
  if (!stored.has_value()) {
    for (const Pattern& pattern : patterns_) {
      if (module == pattern.module || module.ends_with("." + pattern.module)) {
        alpha = pattern.alpha;
        break;
      }
    }
  }
  return alpha / (rank_stabilised_ ? std::sqrt(r) : r);
}

}  // namespace wan
