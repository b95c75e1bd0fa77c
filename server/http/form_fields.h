// Reads the fields of a form one by one, and collects their violations.
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

// Returns the number that JSON or a text has if it is whole; 16.0 is, because Python writes it so.
std::optional<int64_t> WholeNumber(const nlohmann::json& value);

// Returns whether the value is a text without characters; json's own `empty` asks for null and for
// containers alone.
bool IsEmptyText(const nlohmann::json& value);

// Each function that takes a field returns nothing if the caller left it out, or if it is wrong,
// which is noted then. Names must be literals. Take every field that the API has before End.
class FormFields {
 public:
  // Takes the fields of the form, not its files.
  explicit FormFields(Form& form) : fields_(std::move(form.fields)), texts_only_(form.texts_only) {}

  // Notes a violation of `field`.
  void Wrong(std::string_view field, std::string_view description);
  // Notes that the field must be `right`: "a text".
  void Unfit(std::string_view field, const nlohmann::json& value, std::string_view right);

  // The value as it is.
  std::optional<nlohmann::json> Take(const char* name);
  // The same for fields that are not texts: an empty text stands for null in a form.
  std::optional<nlohmann::json> TakeNotBlank(const char* name);

  std::optional<std::string> Text(const char* name);
  // A text that is not empty: an empty one could be taken for one that was left out.
  std::optional<std::string> FullText(const char* name);
  // `right` says what the field must be where its value is not a whole number within the bounds.
  std::optional<int64_t> Integer(const char* name, std::string_view right,
                                 int64_t least = std::numeric_limits<int32_t>::min(),
                                 int64_t most = std::numeric_limits<int32_t>::max());
  std::optional<double> Number(const char* name);
  // False if it is left out.
  bool Flag(const char* name);

  // The same for values inside of a field, whose names are for violations.
  std::optional<std::string> TextOf(std::string_view name, nlohmann::json& value);
  std::optional<double> NumberOf(std::string_view name, const nlohmann::json& value);

  // INVALID_ARGUMENT with all recorded violations and with every field and file that was not taken,
  // because a request for something unsupported must not seem to succeed.
  absl::Status End(const std::map<std::string, std::string>& files);

 private:
  void Unknown(std::string_view name);

  std::map<std::string, nlohmann::json> fields_;
  const bool texts_only_;
  std::vector<std::string_view> known_;  // the names that were asked for
  std::vector<FieldViolation> violations_;
};

}  // namespace wan::server
