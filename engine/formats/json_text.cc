#include "engine/formats/json_text.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "absl/strings/str_cat.h"
#include "engine/formats/file_errors.h"
#include "engine/formats/mapped_file.h"

namespace wan {
namespace {

using nlohmann::json;

absl::string_view Absl(std::string_view text) { return {text.data(), text.size()}; }

// Checks the text without building a tree. The library's own parser silently keeps the last of two
// equal keys and, without exceptions, gives no reason for an error.
class Examiner : public nlohmann::json_sax<json> {
 public:
  const std::string& problem() const { return problem_; }

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_object(std::size_t) override { return Enter(); }
  bool end_object() override { return Leave(); }
  bool start_array(std::size_t) override { return Enter(); }
  bool end_array() override { return Leave(); }

  bool key(string_t& name) override {
    if (keys_.back().insert(name).second) return true;
    problem_ = absl::StrCat("key \"", Printable(name), "\" occurs twice");
    return false;
  }

  bool parse_error(std::size_t position, const std::string& /*last_token*/,
                   const json::exception& /*error*/) override {
    problem_ = absl::StrCat("not valid JSON at byte ", position);
    return false;
  }

 private:
  static constexpr size_t kDeepest = 64;

  bool Enter() {
    keys_.emplace_back();
    if (keys_.size() <= kDeepest) return true;
    problem_ = absl::StrCat("JSON is nested deeper than ", kDeepest, " levels");
    return false;
  }

  bool Leave() {
    keys_.pop_back();
    return true;
  }

  std::vector<std::set<std::string>> keys_;
  std::string problem_;
};

bool IsInteger(const json& value, int64_t min, int64_t max) {
  if (!value.is_number_integer()) return false;
  // Only a number above INT64_MAX would change its sign below.
  const bool fits =
      !value.is_number_unsigned() || value.get<uint64_t>() <= static_cast<uint64_t>(INT64_MAX);
  return fits && value.get<int64_t>() >= min && value.get<int64_t>() <= max;
}

std::string RangeText(int64_t min, int64_t max) {
  return absl::StrCat("an integer from ", min, " to ", max);
}

}  // namespace

absl::StatusOr<json> ParseJson(std::string_view text, std::string_view file) {
  Examiner examiner;
  if (!json::sax_parse(text, &examiner)) return Damaged(file, examiner.problem());
  json value = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (value.is_discarded()) return Damaged(file, "not valid JSON");
  return value;
}

absl::StatusOr<json> ReadJsonObject(const std::string& path) {
  absl::StatusOr<std::shared_ptr<const MappedFile>> file = MappedFile::Open(path);
  if (!file.ok()) return file.status();
  const absl::StatusOr<std::vector<std::byte>> bytes = (*file)->Copy((*file)->bytes());
  if (!bytes.ok()) return bytes.status();
  absl::StatusOr<json> value =
      ParseJson({reinterpret_cast<const char*>(bytes->data()), bytes->size()}, path);
  if (!value.ok()) {
    const absl::Status foreign = CheckNotForeign(path, *bytes, FileContent::kJson);
    return foreign.ok() ? value.status() : foreign;
  }
  if (!value->is_object()) return Damaged(path, "not a JSON object");
  return value;
}

JsonFields::JsonFields(const json& object, const std::string& file)
    : object_(object), file_(file) {}

std::vector<std::string> JsonFields::Keys() const {
  std::vector<std::string> keys;
  for (const auto& [key, value] : object_.items()) keys.push_back(key);
  return keys;
}

bool JsonFields::Has(std::string_view key) const {
  const auto found = object_.find(key);
  return found != object_.end() && !found->is_null();
}

template <typename T, typename Accepts>
T JsonFields::Scalar(std::string_view key, std::string_view expected, Accepts accepts) {
  const json* const value = Find(key);
  if (value == nullptr) return {};
  if (accepts(*value)) return value->get<T>();
  Wrong(key, expected, *value);
  return {};
}

template <typename T, typename Accepts>
std::vector<T> JsonFields::Array(std::string_view key, std::string_view expected, Accepts accepts) {
  const json* const value = Find(key);
  if (value == nullptr) return {};
  if (value->is_array() && std::all_of(value->begin(), value->end(), accepts)) {
    return value->get<std::vector<T>>();
  }
  Wrong(key, absl::StrCat("an array, each element ", Absl(expected)), *value);
  return {};
}

int64_t JsonFields::Integer(std::string_view key, int64_t min, int64_t max) {
  return Scalar<int64_t>(key, RangeText(min, max),
                         [=](const json& value) { return IsInteger(value, min, max); });
}

double JsonFields::Number(std::string_view key) {
  return Scalar<double>(key, "a number", [](const json& value) { return value.is_number(); });
}

bool JsonFields::Bool(std::string_view key) {
  return Scalar<bool>(key, "true or false", [](const json& value) { return value.is_boolean(); });
}

std::string JsonFields::Text(std::string_view key) {
  return Scalar<std::string>(key, "a string", [](const json& value) { return value.is_string(); });
}

std::vector<int64_t> JsonFields::Integers(std::string_view key, int64_t min, int64_t max) {
  return Array<int64_t>(key, RangeText(min, max),
                        [=](const json& value) { return IsInteger(value, min, max); });
}

std::vector<double> JsonFields::Numbers(std::string_view key) {
  return Array<double>(key, "a number", [](const json& value) { return value.is_number(); });
}

std::vector<bool> JsonFields::Bools(std::string_view key) {
  return Array<bool>(key, "true or false", [](const json& value) { return value.is_boolean(); });
}

void JsonFields::AddProblem(std::string_view what) { problems_.push_back(Damaged(file_, what)); }

void JsonFields::Refuse(std::string_view what) { problems_.push_back(Unsupported(file_, what)); }

const json* JsonFields::Find(std::string_view key) {
  if (Has(key)) return &*object_.find(key);
  AddProblem(absl::StrCat("\"", Absl(key), "\" is missing"));
  return nullptr;
}

void JsonFields::Wrong(std::string_view key, std::string_view expected, const json& found) {
  const std::string text = found.dump(-1, ' ', true, json::error_handler_t::replace);
  AddProblem(
      absl::StrCat("\"", Absl(key), "\" is ", Printable(text), ", expected ", Absl(expected)));
}

}  // namespace wan
