#include "server/http/form.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "engine/api/errors.h"
#include "engine/api/utf8.h"

namespace wan::server {
namespace {

using nlohmann::json;

constexpr size_t kMaxBoundary = 70;  // maximum number of characters of a boundary by RFC 2046

absl::string_view View(std::string_view text) { return {text.data(), text.size()}; }

absl::Status Wrong(std::string_view field, std::string_view description) {
  return InvalidFields({{std::string(field), std::string(description)}});
}

absl::StatusOr<Form> ParseJson(const std::string& body) {
  int values = 0;
  // Drop the values beyond the limit while parsing.
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
    // Treat a field that is null like a field that is left out.
    if (!value.is_null()) form.fields.emplace(name, std::move(value));
  }
  return form;
}

// Returns the value of NAME="value" among the parameters after the first ';'; nullopt if there is
// no such parameter.
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

// Returns the value of a field in the header of a part; empty if the header does not have the
// field.
std::string_view PartField(std::string_view header, std::string_view name) {
  while (!header.empty()) {
    const size_t end = header.find("\r\n");
    const std::string_view line = header.substr(0, end);
    const size_t colon = line.find(':');
    if (colon != std::string_view::npos &&
        absl::EqualsIgnoreCase(View(line.substr(0, colon)), View(name))) {
      return line.substr(colon + 1);
    }
    if (end == std::string_view::npos) break;
    header.remove_prefix(end + 2);
  }
  return {};
}

// Whether a part is a file; some clients send files without a name or a type.
bool IsFile(std::string_view header, std::string_view disposition, std::string_view content) {
  if (Parameter(disposition, "filename").has_value()) return true;
  if (Parameter(disposition, "filename*").has_value()) return true;
  const absl::string_view type =
      absl::StripAsciiWhitespace(View(PartField(header, "content-type")));
  return absl::StartsWithIgnoreCase(type, "image/") ||
         absl::StartsWithIgnoreCase(type, "application/octet-stream") || !IsUtf8(content);
}

// Splits "loras[][name]" into "loras", "", "name". A name that does not have such brackets is one
// part.
std::vector<std::string> PartsOf(std::string_view name) {
  constexpr size_t kMaxDepth = 4;  // no field of this API is nested this deeply
  std::vector<std::string> whole = {std::string(name)};
  size_t at = name.find('[');
  if (at == 0 || at == std::string_view::npos) return whole;
  std::vector<std::string> parts = {std::string(name.substr(0, at))};
  while (at < name.size()) {
    const size_t end = name.find(']', at);
    if (name[at] != '[' || end == std::string_view::npos || parts.size() > kMaxDepth) return whole;
    parts.emplace_back(name.substr(at + 1, end - at - 1));
    at = end + 1;
  }
  return parts;
}

// Adds a text at the path in its name: OpenAI's clients write {"loras": [{"name": "ink"}]} as the
// part "loras[][name]". If the last entry of a list already has the member, the text begins a new
// entry.
absl::Status AddText(std::string_view name, std::string_view content, Form& form) {
  const std::vector<std::string> parts = PartsOf(name);
  absl::Status twice = Wrong(name, "is given twice; give it once");
  if (form.files.contains(parts.front())) return twice;
  json* at = &form.fields[parts.front()];
  for (size_t i = 1; i < parts.size(); ++i) {
    const bool list = parts[i].empty();
    if (at->is_null()) *at = list ? json::array() : json::object();
    if (list ? !at->is_array() : !at->is_object()) return twice;
    if (!list) {
      at = &(*at)[parts[i]];
      continue;
    }
    const bool same_entry = i + 1 < parts.size() && !at->empty() && at->back().is_object() &&
                            !at->back().contains(parts[i + 1]);
    if (!same_entry) at->push_back(nullptr);
    at = &at->back();
  }
  if (!at->is_null()) return twice;
  *at = std::string(content);
  return absl::OkStatus();
}

// Adds one part of the body; `part` begins with the part's header.
absl::Status AddPart(std::string_view part, Form& form) {
  const size_t end = part.substr(0, kMaxPartHeaderBytes).find("\r\n\r\n");
  if (end == std::string_view::npos) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a part of the body has no end of its header within ", kMaxPartHeaderBytes, " bytes"));
  }
  const std::string_view header = part.substr(0, end);
  const std::string_view content = part.substr(end + 4);
  const std::string_view disposition = PartField(header, "content-disposition");
  const std::string name = Parameter(disposition, "name").value_or("");
  if (name.empty() || !IsUtf8(name)) {
    return absl::InvalidArgumentError(
        "a part of the body has no name; its header needs 'Content-Disposition: form-data; "
        "name=\"NAME\"'");
  }
  if (!IsFile(header, disposition, content)) {
    if (content.size() > kMaxPartTextBytes && !content.starts_with("data:")) {
      return Wrong(name.substr(0, kMaxShownName),
                   absl::StrCat("has ", content.size(), " bytes; must have at most ",
                                kMaxPartTextBytes, " as a text that is no data URL"));
    }
    return AddText(name, content, form);
  }
  if (form.fields.contains(name) || !form.files.emplace(name, content).second) {
    return Wrong(name, "is given twice; give it once");
  }
  return absl::OkStatus();
}

absl::StatusOr<Form> ParseMultipart(const std::string& boundary, std::string_view body) {
  const std::string delimiter = "\r\n--" + boundary;
  const std::string_view first = std::string_view(delimiter).substr(2);
  if (!body.starts_with(first)) {
    // Search for the first part, because RFC 2046 allows text before it.
    const size_t before = body.find(delimiter);
    if (before == std::string_view::npos) {
      return absl::InvalidArgumentError(
          "malformed multipart/form-data: no part starts with the boundary given in Content-Type");
    }
    body.remove_prefix(before + 2);
  }
  const absl::Status broken = absl::InvalidArgumentError(
      "malformed multipart/form-data: the last part does not end with the boundary given in "
      "Content-Type and '--'");
  body.remove_prefix(first.size());
  Form form;
  form.texts_only = true;
  for (int parts = 1; !body.starts_with("--"); ++parts) {  // after the last part there is "--"
    if (!body.starts_with("\r\n")) return broken;
    body.remove_prefix(2);
    const size_t end = body.find(delimiter);
    if (end == std::string_view::npos) return broken;
    if (parts > kMaxFormValues) {
      return absl::InvalidArgumentError(
          absl::StrCat("the body has more than ", kMaxFormValues, " parts, the most it may"));
    }
    if (absl::Status status = AddPart(body.substr(0, end), form); !status.ok()) return status;
    body.remove_prefix(end + delimiter.size());
  }
  return form;
}

std::optional<std::string> PercentDecoded(std::string_view text) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded.push_back(text[i] == '+' ? ' ' : text[i]);
      continue;
    }
    const std::string_view digits = text.substr(i + 1, 2);
    if (digits.size() < 2 || !std::all_of(digits.begin(), digits.end(), absl::ascii_isxdigit)) {
      return std::nullopt;
    }
    decoded.append(absl::HexStringToBytes(View(digits)));
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
