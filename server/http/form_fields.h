// Reads the fields of a form one by one and collects violations.
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

// Returns the value of a number or numeric text if it is whole; 16.0 counts, because Python writes
// it.
std::optional<int64_t> WholeNumber(const nlohmann::json& value);

// Returns whether the value is an empty text. (json::empty tests only null and containers.)
bool IsEmptyText(const nlohmann::json& value);

// The functions that take a field return nothing if the caller left it out, or if it is wrong; then
// they record a violation. Names must be literals. Take every field of the API before End.
class FormFields {
 public:
  // Moves the fields, but not the files, out of the form.
  explicit FormFields(Form& form) : fields_(std::move(form.fields)), texts_only_(form.texts_only) {}

  // Records a violation of `field`.
  void Wrong(std::string_view field, std::string_view description);
  // Records that the field must be `right`, for example "a text".
  void Unfit(std::string_view field, const nlohmann::json& value, std::string_view right);

  // Takes a value of any type.
  std::optional<nlohmann::json> Take(const char* name);
  // The same, but an empty text of a multipart body counts as left out.
  std::optional<nlohmann::json> TakeNotBlank(const char* name);

  std::optional<std::string> Text(const char* name);
  // Takes a text that must not be empty, because an empty one could be an omission.
  std::optional<std::string> FullText(const char* name);
  // Takes a whole number within the bounds. `right` says what the field must be, for the violation.
  std::optional<int64_t> Integer(const char* name, std::string_view right,
                                 int64_t least = std::numeric_limits<int32_t>::min(),
                                 int64_t most = std::numeric_limits<int32_t>::max());
  std::optional<double> Number(const char* name);
  // Returns false if the field is left out.
  bool Flag(const char* name);

  // The same for nested values; `name` is used in violations.
  std::optional<std::string> TextOf(std::string_view name, nlohmann::json& value);
  std::optional<double> NumberOf(std::string_view name, const nlohmann::json& value);

  // Returns INVALID_ARGUMENT with all violations, and with every field and file that was not taken,
  // because an unsupported request must not seem to succeed.
  absl::Status End(const std::map<std::string, std::string>& files);

 private:
  void Unknown(std::string_view name);

  std::map<std::string, nlohmann::json> fields_;
  const bool texts_only_;
  std::vector<std::string_view> known_;  // the names that were taken
  std::vector<FieldViolation> violations_;
};

}  // namespace wan::server
