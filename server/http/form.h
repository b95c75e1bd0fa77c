// Parses the fields of a body, JSON or multipart/form-data, and of a query.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace wan::server {

// Most values of a body, counting those inside others.
inline constexpr int kMaxFormValues = 1'000;
// Most bytes of a caller's name that a message shows.
inline constexpr size_t kMaxShownName = 100;
// Most bytes of a text in a multipart body, as of a prompt, unless it is a data URL.
inline constexpr size_t kMaxPartTextBytes = size_t{64} << 10;
// Most bytes of the header of one part of a multipart body.
inline constexpr size_t kMaxPartHeaderBytes = size_t{4} << 10;

// The fields of a body. Texts are UTF-8.
struct Form {
  // By name. Fields of a JSON body that are null are left out.
  std::map<std::string, nlohmann::json> fields;
  // Whether every value is a text, alone or inside of lists and objects: the body was a form. It
  // has no null, so an empty text may stand for one.
  bool texts_only = false;
  // The files of a multipart body, by name: parts with a file name (filename or filename*), with
  // the type of an image or of plain bytes, or with content that is not UTF-8.
  std::map<std::string, std::string> files;
};

// Reads a body of this content type. INVALID_ARGUMENT says what is wrong with it, with a violation
// of the field where one is to blame. Memory stays within a small multiple of the body.
absl::StatusOr<Form> ParseForm(std::string_view content_type, std::string body);

// Reads "name=value&...", percent-encoded. INVALID_ARGUMENT, with a violation, for a name that
// comes twice or an encoding that is none.
absl::StatusOr<std::map<std::string, std::string>> ParseQuery(std::string_view query);

}  // namespace wan::server
