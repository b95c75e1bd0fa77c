// Parses the fields of a body (JSON or multipart/form-data) and of a URL's query.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace wan::server {

// Most values of a body, including nested ones.
inline constexpr int kMaxFormValues = 1'000;
// Most bytes of a name from the caller that a message shows.
inline constexpr size_t kMaxShownName = 100;
// Most bytes of a text in a multipart body, for example a prompt, except data URLs.
inline constexpr size_t kMaxPartTextBytes = size_t{64} << 10;
// Most bytes of the header of one part of a multipart body.
inline constexpr size_t kMaxPartHeaderBytes = size_t{4} << 10;

// The fields of a body. Texts are UTF-8.
struct Form {
  // By name, without fields that are null.
  std::map<std::string, nlohmann::json> fields;
  // Whether the body was multipart, so that all values, even nested ones, are texts. An empty text
  // may then stand for null.
  bool texts_only = false;
  // The files of a multipart body, by name: parts with a file name (filename or filename*), with
  // the type of an image or of plain bytes, or with content that is not UTF-8.
  std::map<std::string, std::string> files;
};

// Parses a body of this content type. INVALID_ARGUMENT, with a violation if one field is wrong.
// Uses a small multiple of the body's memory.
absl::StatusOr<Form> ParseForm(std::string_view content_type, std::string body);

// Parses percent-encoded "name=value&...". INVALID_ARGUMENT, with a violation, for a repeated name
// or a wrong encoding.
absl::StatusOr<std::map<std::string, std::string>> ParseQuery(std::string_view query);

}  // namespace wan::server
