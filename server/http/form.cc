#include "server/http/form.h"

#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "engine/api/errors.h"

namespace wan::server {
namespace {

using nlohmann::json;

constexpr size_t kMaxBoundary = 70;  // RFC 2046

absl::string_view View(std::string_view text) { return {text.data(), text.size()}; }

absl::Status Wrong(std::string_view field, std::string_view description) {
  return InvalidFields({{std::string(field), std::string(description)}});
}

bool IsUtf8(const std::string& text) {
  try {
    (void)json(text).dump();
    return true;
  } catch (const json::type_error&) {
    return false;
  }
}

absl::StatusOr<Form> ParseJson(const std::string& body) {
  int values = 0;
  // What is too much is read to its end and kept nowhere.
  const auto count = [&](int /*depth*/, json::parse_event_t event, json& /*parsed*/) {
    if (event != json::parse_event_t::array_end && event != json::parse_event_t::object_end) {
      ++values;
    }
    return values <= kMaxFormValues;
  };
  json parsed = json::parse(body, count, /*allow_exceptions=*/false);
  if (values > kMaxFormValues) {
    return absl::InvalidArgumentError(
        absl::StrCat("the body has more than ", kMaxFormValues, " values, the most it may"));
  }
  if (parsed.is_discarded()) {
    return absl::InvalidArgumentError("the body is not JSON in UTF-8");
  }
  if (!parsed.is_object()) return absl::InvalidArgumentError("the body must be a JSON object");
  Form form;
  for (auto& [name, value] : parsed.items()) {
    // As if it had been left out.
    if (!value.is_null()) form.fields.emplace(name, std::move(value));
  }
  return form;
}

// The value of NAME="value" among the parameters behind the first ';'; nothing if it has none.
std::optional<std::string> Parameter(std::string_view field, std::string_view name) {
  size_t at = field.find(';');
  while (at != std::string_view::npos) {
    ++at;
    while (at < field.size() && (field[at] == ' ' || field[at] == '\t')) ++at;
    const size_t equals = field.find('=', at);
    if (equals == std::string_view::npos) return std::nullopt;
    const bool wanted = absl::EqualsIgnoreCase(View(field.substr(at, equals - at)), View(name));
    std::string value;
    at = equals + 1;
    if (at < field.size() && field[at] == '"') {
      for (++at; at < field.size() && field[at] != '"'; ++at) {
        if (field[at] == '\\' && at + 1 < field.size()) ++at;
        value.push_back(field[at]);
      }
      at = field.find(';', at);
    } else {
      const size_t end = field.find(';', at);
      const auto text = field.substr(at, end == std::string_view::npos ? end : end - at);
      value = std::string(absl::StripAsciiWhitespace(View(text)));
      at = end;
    }
    if (wanted) return value;
  }
  return std::nullopt;
}

// The value of Content-Disposition in the header of a part.
std::string_view Disposition(std::string_view header) {
  constexpr std::string_view kName = "content-disposition:";
  while (!header.empty()) {
    const size_t end = header.find("\r\n");
    const std::string_view line = header.substr(0, end);
    if (absl::StartsWithIgnoreCase(View(line), View(kName))) return line.substr(kName.size());
    if (end == std::string_view::npos) break;
    header.remove_prefix(end + 2);
  }
  return {};
}

// Adds one part, its header and content.
absl::Status AddPart(std::string_view part, Form& form) {
  const size_t end = part.substr(0, kMaxPartHeaderBytes).find("\r\n\r\n");
  if (end == std::string_view::npos) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a part of the body has no end of its header within ", kMaxPartHeaderBytes, " bytes"));
  }
  const std::string_view disposition = Disposition(part.substr(0, end));
  const std::string name = Parameter(disposition, "name").value_or("");
  if (name.empty() || !IsUtf8(name)) {
    return absl::InvalidArgumentError(
        "a part of the body has no name; its header needs 'Content-Disposition: form-data; "
        "name=\"NAME\"'");
  }
  if (form.fields.size() + form.files.size() >= static_cast<size_t>(kMaxFormValues)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the body has more than ", kMaxFormValues, " parts, the most it may"));
  }
  std::string content(part.substr(end + 4));
  if (form.fields.contains(name) || form.files.contains(name)) {
    return Wrong(name, "is given twice; give it once");
  }
  if (Parameter(disposition, "filename").has_value()) {
    form.files.emplace(name, std::move(content));
  } else if (IsUtf8(content)) {
    form.fields.emplace(name, std::move(content));
  } else {
    return Wrong(name, "is not a text in UTF-8");
  }
  return absl::OkStatus();
}

absl::StatusOr<Form> ParseMultipart(const std::string& boundary, std::string_view body) {
  const std::string delimiter = "\r\n--" + boundary;
  const std::string_view first = std::string_view(delimiter).substr(2);
  const absl::Status broken = absl::InvalidArgumentError(
      "the body is not multipart/form-data: its parts do not stand between the lines that the "
      "boundary of Content-Type makes");
  if (!body.starts_with(first)) return broken;
  body.remove_prefix(first.size());
  Form form;
  while (!body.starts_with("--")) {  // which ends the last part
    if (!body.starts_with("\r\n")) return broken;
    body.remove_prefix(2);
    const size_t end = body.find(delimiter);
    if (end == std::string_view::npos) return broken;
    if (absl::Status status = AddPart(body.substr(0, end), form); !status.ok()) return status;
    body.remove_prefix(end + delimiter.size());
  }
  return form;
}

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const char lower = absl::ascii_tolower(static_cast<unsigned char>(c));
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

std::optional<std::string> PercentDecoded(std::string_view text) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded.push_back(text[i] == '+' ? ' ' : text[i]);
      continue;
    }
    const bool whole = text.size() - i > 2;
    const int high = whole ? HexDigit(text[i + 1]) : -1;
    const int low = whole ? HexDigit(text[i + 2]) : -1;
    if (high < 0 || low < 0) return std::nullopt;
    decoded.push_back(static_cast<char>(high * 16 + low));
    i += 2;
  }
  return decoded;
}

}  // namespace

absl::StatusOr<Form> ParseForm(std::string_view content_type, std::string body) {
  const std::string type = absl::AsciiStrToLower(
      absl::StripAsciiWhitespace(View(content_type.substr(0, content_type.find(';')))));
  if (type == "application/json") return ParseJson(body);
  if (type == "multipart/form-data") {
    const std::optional<std::string> boundary = Parameter(content_type, "boundary");
    if (boundary.has_value() && !boundary->empty() && boundary->size() <= kMaxBoundary) {
      return ParseMultipart(*boundary, body);
    }
    return absl::InvalidArgumentError(
        absl::StrCat("Content-Type needs a boundary of 1 to ", kMaxBoundary, " characters"));
  }
  return absl::InvalidArgumentError(
      absl::StrCat("Content-Type must be application/json or multipart/form-data, got '",
                   absl::CHexEscape(View(content_type.substr(0, 100))), "'"));
}

absl::StatusOr<std::map<std::string, std::string>> ParseQuery(std::string_view query) {
  std::map<std::string, std::string> fields;
  for (const absl::string_view pair : absl::StrSplit(View(query), '&', absl::SkipEmpty())) {
    const std::pair<std::string, std::string> halves =
        absl::StrSplit(pair, absl::MaxSplits('=', 1));
    const std::optional<std::string> name = PercentDecoded(halves.first);
    const std::optional<std::string> value = PercentDecoded(halves.second);
    if (!name.has_value() || !value.has_value() || !IsUtf8(*name) || !IsUtf8(*value)) {
      return absl::InvalidArgumentError("the query is not percent-encoded UTF-8");
    }
    if (!fields.emplace(*name, *value).second) return Wrong(*name, "is given twice; give it once");
  }
  return fields;
}

}  // namespace wan::server
