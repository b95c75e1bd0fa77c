#include "server/http/form_fields.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "server/http/field_names.h"

namespace wan::server {
namespace {

using nlohmann::json;

// A double represents every whole number up to this one exactly.
constexpr double kMaxExact = 9'007'199'254'740'992;

// Returns the value as messages show it, shortened if it is long.
std::string Shown(const json& value) {
  constexpr size_t kMost = 60;
  if (value.is_object()) return "an object";
  if (value.is_array()) return "a list";
  const auto* const text = value.get_ptr<const std::string*>();
  if (text == nullptr || text->size() <= kMost) return value.dump(-1, ' ', /*ensure_ascii=*/true);
  // The cut may split a UTF-8 character; dump ignores the rest of it.
  const json start = text->substr(0, kMost);
  return start.dump(-1, ' ', /*ensure_ascii=*/true, json::error_handler_t::ignore) + "...";
}

}  // namespace

std::optional<int64_t> WholeNumber(const json& value) {
  int64_t number = 0;
  double real = 0;
  if (value.is_number_unsigned()) {
    const auto large = value.get<uint64_t>();
    if (large > uint64_t{std::numeric_limits<int64_t>::max()}) return std::nullopt;
    return static_cast<int64_t>(large);
  }
  if (value.is_number_integer()) return value.get<int64_t>();
  if (value.is_number_float()) {
    real = value.get<double>();
  } else {
    const auto* const text = value.get_ptr<const std::string*>();
    if (text == nullptr) return std::nullopt;
    if (absl::SimpleAtoi(*text, &number)) return number;
    if (!absl::SimpleAtod(*text, &real)) return std::nullopt;
  }
  // the comparison is false for NaN
  const bool whole = std::abs(real) <= kMaxExact && std::trunc(real) == real;
  return whole ? std::optional(static_cast<int64_t>(real)) : std::nullopt;
}

bool IsEmptyText(const json& value) {
  const auto* const text = value.get_ptr<const std::string*>();
  return text != nullptr && text->empty();
}

void FormFields::Wrong(std::string_view field, std::string_view description) {
  violations_.push_back({std::string(field), std::string(description)});
}

void FormFields::Unfit(std::string_view field, const json& value, std::string_view right) {
  Wrong(field, absl::StrCat("is ", Shown(value), "; must be ", std::string(right)));
}

std::optional<json> FormFields::Take(const char* name) {
  known_.emplace_back(name);
  const auto found = fields_.find(name);
  if (found == fields_.end()) return std::nullopt;
  json value = std::move(found->second);
  fields_.erase(found);
  return value;
}

std::optional<json> FormFields::TakeNotBlank(const char* name) {
  std::optional<json> value = Take(name);
  if (texts_only_ && value.has_value() && IsEmptyText(*value)) return std::nullopt;
  return value;
}

std::optional<std::string> FormFields::Text(const char* name) {
  std::optional<json> value = Take(name);
  return value.has_value() ? TextOf(name, *value) : std::nullopt;
}

std::optional<std::string> FormFields::TextOf(std::string_view name, json& value) {
  if (value.is_string()) return std::move(value.get_ref<std::string&>());
  Unfit(name, value, "a text");
  return std::nullopt;
}

std::optional<std::string> FormFields::FullText(const char* name) {
  std::optional<std::string> text = Text(name);
  if (!text.has_value() || !text->empty()) return text;
  Wrong(name, "is empty; must have some text, or be left out");
  return std::nullopt;
}

std::optional<int64_t> FormFields::Integer(const char* name, std::string_view right, int64_t least,
                                           int64_t most) {
  const std::optional<json> value = TakeNotBlank(name);
  if (!value.has_value()) return std::nullopt;
  const std::optional<int64_t> number = WholeNumber(*value);
  if (number.has_value() && *number >= least && *number <= most) return number;
  Unfit(name, *value, right);
  return std::nullopt;
}

std::optional<double> FormFields::Number(const char* name) {
  const std::optional<json> value = TakeNotBlank(name);
  return value.has_value() ? NumberOf(name, *value) : std::nullopt;
}

std::optional<double> FormFields::NumberOf(std::string_view name, const json& value) {
  double number = 0;
  if (value.is_number()) {
    number = value.get<double>();
  } else if (!value.is_string() ||
             !absl::SimpleAtod(value.get_ref<const std::string&>(), &number)) {
    number = std::numeric_limits<double>::quiet_NaN();
  }
  if (std::isfinite(number)) return number;
  Unfit(name, value, "a number");
  return std::nullopt;
}

bool FormFields::Flag(const char* name) {
  const std::optional<json> value = TakeNotBlank(name);
  if (!value.has_value() || *value == false) return false;
  if (*value == true) return true;
  // Compare in lower case, because Python writes "True".
  const std::string text =
      value->is_string() ? absl::AsciiStrToLower(value->get_ref<const std::string&>()) : "";
  if (text == "true" || text == "false") return text == "true";
  Unfit(name, *value, "true or false");
  return false;
}

absl::Status FormFields::End(const std::map<std::string, std::string>& files) {
  for (const auto& [name, value] : fields_) Unknown(name);
  for (const auto& [name, content] : files) {
    if (std::find(known_.begin(), known_.end(), name) != known_.end()) {
      Wrong(name, "is a file, or is not UTF-8; must be a text");
    } else {
      Unknown(name);
    }
  }
  return violations_.empty() ? absl::OkStatus() : InvalidFields(violations_);
}

void FormFields::Unknown(std::string_view name) {
  const std::string_view shown = name.empty() ? "\"\"" : name.substr(0, kMaxShownName);
  Wrong(shown, absl::StrCat("is not a field of this API; ", AdviceForUnknown(shown, known_)));
}

}  // namespace wan::server
