// Parses the fields of a request's body (JSON or multipart/form-data) and of a URL's query.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace wan::server {

// Maximum number of values that a body may have, nested ones included.
inline constexpr int kMaxFormValues = 1'000;
// Maximum number of bytes that a message shows of a name that the caller sent.
inline constexpr size_t kMaxShownName = 100;
// Maximum number of bytes of a text in a multipart body, for example a prompt; data URLs may be
// longer.
inline constexpr size_t kMaxPartTextBytes = size_t{64} << 10;
// Maximum number of bytes of the header of one part of a multipart body.
inline constexpr size_t kMaxPartHeaderBytes = size_t{4} << 10;

// The fields of a body. Texts are UTF-8.
struct Form {
  // The values by the names of the fields, without fields that are null.
  std::map<std::string, nlohmann::json> fields;
  // Whether the body was multipart; then all values, even nested ones, are texts. An empty text may
  // then stand for null.
  bool texts_only = false;
  // The files of a multipart body by the names of their fields: parts that have a file name
  // (filename or filename*), the content type of an image or of plain bytes, or content that is not
  // UTF-8.
  std::map<std::string, std::string> files;
};

// Parses a body that has this content type. Fails with INVALID_ARGUMENT, and with a violation if a
// single field is wrong. ParseForm uses memory of a small multiple of the body's size.
absl::StatusOr<Form> ParseForm(std::string_view content_type, std::string body);

// Parses percent-encoded "name=value&...". Fails with INVALID_ARGUMENT and a violation if a name is
// repeated or the encoding is wrong.
absl::StatusOr<std::map<std::string, std::string>> ParseQuery(std::string_view query);

}  // namespace wan::server
