#include "engine/checkpoint/lora_alpha.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "engine/formats/file_errors.h"
#include "engine/formats/json_text.h"

namespace wan {
namespace {

using nlohmann::json;

// Diffusers keeps its settings under this metadata key; inside, this prefix marks the settings of
// the transformer.
constexpr const char kDiffusersKey[] = "lora_adapter_metadata";
constexpr std::string_view kComponentPrefix = "transformer.";

// The spellings of each setting in plain metadata, in lower case and without '_' and '-'.
constexpr std::array<std::string_view, 5> kAlphaKeys = {"loraalpha", "alpha", "networkalpha",
                                                        "ssnetworkalpha", "linearalpha"};
constexpr std::array<std::string_view, 7> kRankKeys = {
    "r", "rank", "lorarank", "loradim", "networkdim", "networkrank", "ssnetworkdim"};
constexpr std::array<std::string_view, 2> kStabilisedKeys = {"userslora", "rslora"};

// Only kohya's tools write these keys.
constexpr const char kKohyaAlpha[] = "ss_network_alpha";
constexpr const char kKohyaModule[] = "ss_network_module";
constexpr const char kKohyaArguments[] = "ss_network_args";

std::string_view WithoutComponent(std::string_view key) {
  if (key.starts_with(kComponentPrefix)) key.remove_prefix(kComponentPrefix.size());
  return key;
}

std::string Plain(std::string_view key) {
  key = WithoutComponent(key);
  return absl::AsciiStrToLower(
      absl::StrReplaceAll(absl::string_view(key.data(), key.size()), {{"_", ""}, {"-", ""}}));
}

template <size_t kSize>
bool Contains(const std::array<std::string_view, kSize>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Kohya's tools write such a text where a value is missing or differs between modules.
bool IsNoValue(std::string_view text) {
  const std::string small = absl::AsciiStrToLower(absl::string_view(text.data(), text.size()));
  return small == "none" || small == "null" || small == "dynamic";
}

bool IsTrue(const json& value) {
  if (value.is_boolean()) return value.get<bool>();
  return value.is_string() && absl::AsciiStrToLower(value.get<std::string>()) == "true";
}

bool IsSet(const json& settings, const char* key) {
  const auto found = settings.find(key);
  return found != settings.end() && !found->is_null();
}

// Returns whether musubi-tuner converted the file: it multiplies alpha into the matrices and
// removes the alpha tensors, but kohya's metadata still states alpha. Kohya's own files have an
// alpha tensor for every module.
bool HasMergedAlpha(const TensorFile& file) {
  const auto& tensors = file.tensors;
  return file.metadata.contains(kKohyaModule) &&
         std::any_of(tensors.begin(), tensors.end(),
                     [](const auto& t) { return t.name.find(".lora_A.") != std::string::npos; }) &&
         std::none_of(tensors.begin(), tensors.end(),
                      [](const auto& t) { return t.name.ends_with(".alpha"); });
}

// To PEFT, patterns are regular expressions; in practice they are the names of modules.
absl::StatusOr<std::string> NameInPattern(std::string pattern, const std::string& where) {
  pattern = absl::StrReplaceAll(pattern, {{"\\.", "."}});
  if (pattern.find_first_of("*+?[](){}|\\$") == std::string::npos &&
      pattern.find('^', 1) == std::string::npos) {
    return pattern;
  }
  return Unsupported(where, absl::StrCat("has the regular expression ", Printable(pattern),
                                         " as a pattern; only names of modules are supported"));
}

}  // namespace

// Collects the settings from all places that may hold them.
class LoraAlpha::Reader {
 public:
  explicit Reader(const TensorFile& file) : file_(file) {}

  absl::StatusOr<LoraAlpha> Read(const std::string& config_path) {
    if (absl::Status status = ReadMetadata(); !status.ok()) return status;
    if (!config_path.empty()) {
      const absl::StatusOr<json> config = ReadJsonObject(config_path);
      if (!config.ok()) return config.status();
      if (absl::Status status = ReadObject(*config, config_path); !status.ok()) return status;
    }
    LoraAlpha alpha;
    alpha.path_ = file_.path;
    alpha.dora_setting_ = dora_setting_;
    alpha.is_lokr_ = is_lokr_;
    alpha.stores_stabilised_ = stores_stabilised_;
    alpha.alpha_patterns_ = std::move(alpha_patterns_);
    alpha.rank_patterns_ = std::move(rank_patterns_);
    std::optional<Setting> stabilised;
    for (const auto& [settings, result] :
         {std::pair(&alphas_, &alpha.alpha_), std::pair(&ranks_, &alpha.rank_),
          std::pair(&stabilised_, &stabilised)}) {
      if (absl::Status status = Agree(*settings, *result); !status.ok()) return status;
    }
    if (!compares_ranks_) {
      alpha.rank_.reset();
      alpha.rank_patterns_.clear();
    }
    alpha.rank_stabilised_ = stabilised.has_value() && stabilised->value != 0;
    return alpha;
  }

 private:
  absl::Status Wrong(const std::string& what) const { return Damaged(file_.path, what); }

  absl::Status ReadMetadata() {
    const bool merged = HasMergedAlpha(file_);
    for (const auto& [key, text] : file_.metadata) {
      if (key == kDiffusersKey) {
        const std::string where = absl::StrCat(file_.path, ": ", key);
        const absl::StatusOr<json> settings = ParseJson(text, where);
        if (!settings.ok()) return settings.status();
        if (!settings->is_object()) return Damaged(where, "is not a JSON object");
        if (absl::Status status = ReadObject(*settings, where); !status.ok()) return status;
      } else if (key == kKohyaArguments) {
        const absl::StatusOr<json> arguments = ParseJson(text, file_.path);
        stores_stabilised_ = !merged && arguments.ok() && arguments->is_object() &&
                             arguments->contains("rs_lora") && IsTrue((*arguments)["rs_lora"]);
      } else if (text.starts_with('{')) {
        if (absl::Status status = ReadUnknown(key, text); !status.ok()) return status;
      } else if (!merged || key != kKohyaAlpha) {
        if (absl::Status status = ReadPlain(key, text); !status.ok()) return status;
      }
    }
    return absl::OkStatus();
  }

  // Some trainers store PEFT's settings under a metadata key of their own.
  absl::Status ReadUnknown(const std::string& key, const std::string& text) {
    const absl::StatusOr<json> settings = ParseJson(text, file_.path);
    const bool is_ours =
        settings.ok() && settings->is_object() &&
        (settings->contains("lora_alpha") ||
         settings->contains(absl::StrCat(std::string(kComponentPrefix), "lora_alpha")));
    return is_ours ? ReadObject(*settings, absl::StrCat(file_.path, ": ", Printable(key)))
                   : absl::OkStatus();
  }

  absl::Status ReadPlain(const std::string& key, const std::string& text) {
    const std::string plain = Plain(key);
    std::string where = absl::StrCat(Printable(key), " of its metadata");
    if (Contains(kStabilisedKeys, plain)) {
      const std::string small = absl::AsciiStrToLower(text);
      if (IsNoValue(text)) return absl::OkStatus();
      const bool on = small == "true" || small == "1";
      if (!on && small != "false" && small != "0") {
        return Wrong(absl::StrCat(where, " is \"", Printable(text), "\"; must be true or false"));
      }
      stabilised_.push_back({std::move(where), on ? 1.0 : 0.0});
      return absl::OkStatus();
    }
    const bool is_alpha = Contains(kAlphaKeys, plain);
    if ((!is_alpha && !Contains(kRankKeys, plain)) || IsNoValue(text)) return absl::OkStatus();
    double value = 0;
    if (!absl::SimpleAtod(text, &value) || !std::isfinite(value)) {
      return Wrong(absl::StrCat(where, " is \"", Printable(text),
                                "\"; must be a finite number, for example 16"));
    }
    // Kohya's tools write alpha 0 if alpha equals the rank.
    if (key == kKohyaAlpha && value == 0) return absl::OkStatus();
    (is_alpha ? alphas_ : ranks_).push_back({std::move(where), value});
    return absl::OkStatus();
  }

  // Reads PEFT's settings, whose names may begin with the component's prefix.
  absl::Status ReadObject(const json& object, const std::string& where) {
    json settings = json::object();
    for (const auto& [key, value] : object.items()) {
      settings[std::string(WithoutComponent(key))] = value;
    }
    if (IsSet(settings, "use_dora") && settings["use_dora"] != false) {
      dora_setting_ = absl::StrCat("use_dora of ", where);
    }
    const json type = IsSet(settings, "peft_type") ? settings["peft_type"] : json("LORA");
    if (type != "LORA" && type != "LOHA" && type != "LOKR") {
      return Unsupported(where, absl::StrCat("peft_type is ", Printable(type.dump()),
                                             "; must be LORA, LOHA or LOKR"));
    }
    is_lokr_ |= type == "LOKR";
    if (IsSet(settings, "use_rslora")) {
      if (!settings["use_rslora"].is_boolean()) {
        return Damaged(where, "use_rslora is not true or false");
      }
      stabilised_.push_back(
          {absl::StrCat("use_rslora of ", where), settings["use_rslora"].get<bool>() ? 1.0 : 0.0});
    }
    // PEFT's settings call alpha "lora_alpha" for LoRA, and "alpha" for LoHa and LoKr.
    const char* const alpha = type == "LORA" ? "lora_alpha" : "alpha";
    for (const auto& [key, list] : {std::pair(alpha, &alphas_), std::pair("r", &ranks_)}) {
      if (!IsSet(settings, key)) continue;
      if (!settings[key].is_number()) return Damaged(where, absl::StrCat(key, " is not a number"));
      list->push_back({absl::StrCat(key, " of ", where), settings[key].get<double>()});
    }
    for (const auto& [key, list] : {std::pair("alpha_pattern", &alpha_patterns_),
                                    std::pair("rank_pattern", &rank_patterns_)}) {
      if (!IsSet(settings, key)) continue;
      if (absl::Status status = ReadPatterns(settings[key], key, where, *list); !status.ok()) {
        return status;
      }
    }
    return absl::OkStatus();
  }

  absl::Status ReadPatterns(const json& object, const char* key, const std::string& where,
                            std::vector<Pattern>& list) {
    if (!object.is_object()) return Damaged(where, absl::StrCat(key, " is not an object"));
    std::vector<Pattern> patterns;
    for (const auto& [module, value] : object.items()) {
      if (!value.is_number()) {
        return Damaged(where, absl::StrCat(key, " of ", Printable(module), " is not a number"));
      }
      absl::StatusOr<std::string> name = NameInPattern(module, absl::StrCat(where, ": ", key));
      if (!name.ok() && &list == &rank_patterns_) {
        compares_ranks_ = false;  // skip the rank pattern, because the tensors show their ranks
        return absl::OkStatus();
      }
      if (!name.ok()) return name.status();
      patterns.push_back({*std::move(name), value.get<double>()});
    }
    if (!list.empty() && !patterns.empty() && list != patterns) {
      return Wrong(absl::StrCat("has two different settings ", key, ", one of them in ", where,
                                "; keep the right one"));
    }
    if (!patterns.empty()) list = std::move(patterns);
    return absl::OkStatus();
  }

  absl::Status Agree(const std::vector<Setting>& settings, std::optional<Setting>& result) const {
    for (const Setting& setting : settings) {
      if (!result.has_value()) result = setting;
      if (setting.value == result->value) continue;
      return Wrong(absl::StrCat(result->where, " is ", result->value, ", but ", setting.where,
                                " is ", setting.value, "; remove the wrong one"));
    }
    return absl::OkStatus();
  }

  const TensorFile& file_;
  std::vector<Setting> alphas_;
  std::vector<Setting> ranks_;
  std::vector<Setting> stabilised_;
  std::vector<Pattern> alpha_patterns_;
  std::vector<Pattern> rank_patterns_;
  bool stores_stabilised_ = false;
  bool compares_ranks_ = true;
  std::string dora_setting_;
  bool is_lokr_ = false;
};

absl::StatusOr<LoraAlpha> LoraAlpha::Read(const TensorFile& file, const std::string& config_path) {
  return Reader(file).Read(config_path);
}

std::optional<double> LoraAlpha::Match(const std::vector<Pattern>& patterns,
                                       std::string_view module) {
  constexpr std::string_view kPeftPrefix = "base_model.model.";
  std::string_view bare = module;
  if (bare.starts_with(kPeftPrefix)) bare.remove_prefix(kPeftPrefix.size());
  bare = WithoutComponent(bare);
  for (const Pattern& pattern : patterns) {
    const bool whole = pattern.module.starts_with('^');
    const bool matches =
        whole ? bare == std::string_view(pattern.module).substr(1)
              : module == pattern.module || module.ends_with(absl::StrCat(".", pattern.module));
    if (matches) return pattern.value;
  }
  return std::nullopt;
}

std::optional<double> LoraAlpha::AlphaOf(const LoraPair& pair) const {
  std::optional<double> alpha = Match(alpha_patterns_, pair.module);
  if (!alpha.has_value() && alpha_.has_value()) alpha = alpha_->value;
  if (alpha.has_value() && stores_stabilised_) *alpha *= std::sqrt(static_cast<double>(pair.rank));
  return alpha;
}

std::optional<double> LoraAlpha::RankOf(const LoraPair& pair) const {
  const std::optional<double> rank = Match(rank_patterns_, pair.module);
  if (rank.has_value() || !rank_.has_value()) return rank;
  return rank_->value;
}

double LoraAlpha::Factor(const LoraPair& pair) const {
  const auto rank = static_cast<double>(pair.rank);
  const double alpha = pair.stored.value_or(AlphaOf(pair).value_or(rank));
  return alpha / (rank_stabilised_ ? std::sqrt(rank) : rank);
}

double LoraAlpha::FactorWithoutRank(const std::string& module) const {
  const LoraPair pair{module, 1, {}};
  const std::optional<double> alpha = AlphaOf(pair);
  const std::optional<double> rank = RankOf(pair);
  return is_lokr_ && alpha.has_value() && rank.value_or(0) > 0 ? *alpha / *rank : 1;
}

absl::Status LoraAlpha::CheckPairs(std::span<const LoraPair> pairs) const {
  // Alphas that are stored in 16-bit tensors are rounded.
  constexpr double kTolerance = 0.005;
  const LoraPair* other_alpha = nullptr;
  const LoraPair* other_rank = nullptr;
  bool has_alpha = false;
  bool has_rank = false;
  for (const LoraPair& pair : pairs) {
    const std::optional<double> alpha = AlphaOf(pair);
    if (alpha.has_value() && pair.stored.has_value()) {
      const bool same = std::abs(*alpha - *pair.stored) <= kTolerance * std::abs(*alpha);
      has_alpha |= same;
      if (!same && other_alpha == nullptr) other_alpha = &pair;
    }
    const std::optional<double> rank = RankOf(pair);
    if (!rank.has_value()) continue;
    const bool same = *rank == static_cast<double>(pair.rank);
    has_rank |= same;
    if (!same && other_rank == nullptr) other_rank = &pair;
  }
  if (!has_alpha && other_alpha != nullptr) {
    return Damaged(path_, absl::StrCat(alpha_.has_value() ? alpha_->where : "alpha_pattern",
                                       " gives the alpha ", *AlphaOf(*other_alpha),
                                       ", but the alpha of ", Printable(other_alpha->module),
                                       " is ", *other_alpha->stored, "; remove the wrong one"));
  }
  if (!has_rank && other_rank != nullptr) {
    return Damaged(
        path_, absl::StrCat(rank_.has_value() ? rank_->where : "rank_pattern", " gives the rank ",
                            *RankOf(*other_rank), ", but ", Printable(other_rank->module),
                            " has the rank ", other_rank->rank,
                            ": these settings belong to another file"));
  }
  return absl::OkStatus();
}

}  // namespace wan
