// Reads the fields of a form one by one, and collects violations.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "engine/api/errors.h"
#include "server/http/form.h"

namespace wan::server {

// Returns the whole number that the value is, or that a text contains; nothing for other values.
// 16.0 counts as whole, because Python writes whole numbers like this.
std::optional<int64_t> WholeNumber(const nlohmann::json& value);

// Whether the value is an empty text. (json::empty is false for every text.)
bool IsEmptyText(const nlohmann::json& value);

// The functions that take a field return nothing if the caller left the field out, or if its value
// is wrong; a wrong value is recorded as a violation. The names of fields must be literals, because
// the object keeps views of them. Take every field of the API before you call End.
class FormFields {
 public:
  // Moves the fields out of the form, but not the files.
  explicit FormFields(Form& form) : fields_(std::move(form.fields)), texts_only_(form.texts_only) {}

  // Records a violation of `field`.
  void Wrong(std::string_view field, std::string_view description);
  // Records that the field has `value` but must be `right`, for example "a text".
  void Unfit(std::string_view field, const nlohmann::json& value, std::string_view right);

  // Takes the value of a field, whatever type it has.
  std::optional<nlohmann::json> Take(const char* name);
  // Like Take, but an empty text of a multipart body counts as left out.
  std::optional<nlohmann::json> TakeNotBlank(const char* name);

  std::optional<std::string> Text(const char* name);
  // Takes a text that must not be empty, because an empty text could be a mistake of the caller.
  std::optional<std::string> FullText(const char* name);
  // Takes a whole number within the bounds. `right` says in a violation what the field must be.
  std::optional<int64_t> Integer(const char* name, std::string_view right,
                                 int64_t least = std::numeric_limits<int32_t>::min(),
                                 int64_t most = std::numeric_limits<int32_t>::max());
  std::optional<double> Number(const char* name);
  // Takes true or false; returns false if the field is left out.
  bool Flag(const char* name);

  // Like FullText, for a nested value; violations call it `name`.
  std::optional<std::string> TextOf(std::string_view name, nlohmann::json& value);
  std::optional<double> NumberOf(std::string_view name, const nlohmann::json& value);

  // Returns the names of the fields that were taken so far, whether the form has them or not.
  const std::vector<std::string_view>& known() const { return known_; }

  // Returns INVALID_ARGUMENT with all violations, and with one for every field and file that was
  // not taken, because an unsupported request must not seem to succeed.
  absl::Status End(const std::map<std::string, std::string>& files);

 private:
  void Unknown(std::string_view name);

  std::map<std::string, nlohmann::json> fields_;
  const bool texts_only_;
  std::vector<std::string_view> known_;  // the names of the fields that were taken
  std::vector<FieldViolation> violations_;
};

}  // namespace wan::server
