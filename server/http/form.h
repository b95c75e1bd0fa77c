// What callers send: the fields of a body, JSON or multipart/form-data, and of a query.
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
// Most bytes of the header of one part of a multipart body.
inline constexpr size_t kMaxPartHeaderBytes = size_t{4} << 10;

// The fields of a body. Texts are UTF-8.
struct Form {
  // By name. Of a multipart body all values are texts.
  std::map<std::string, nlohmann::json> fields;
  // The parts of a multipart body that have a file name, by name.
  std::map<std::string, std::string> files;
};

// Reads a body of this content type. INVALID_ARGUMENT says what is wrong with it, with a violation
// of the field where one is to blame. Memory stays within a small multiple of the body.
absl::StatusOr<Form> ParseForm(std::string_view content_type, std::string body);

// Reads "name=value&...", percent-encoded. INVALID_ARGUMENT, with a violation, for a name that
// comes twice or an encoding that is none.
absl::StatusOr<std::map<std::string, std::string>> ParseQuery(std::string_view query);

}  // namespace wan::server
