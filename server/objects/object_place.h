// Parses the setting `objects`.
#pragma once

#include <string>
#include <string_view>
#include <variant>

#include "absl/status/statusor.h"

namespace wan::server {

// s3://BUCKET/PREFIX?endpoint=URL&region=NAME&path_style=true|false
struct S3Place {
  std::string bucket;
  std::string prefix;    // ends with '/' unless it is empty
  std::string endpoint;  // "https://HOST[:PORT]"; empty: of AWS, or of AWS_ENDPOINT_URL
  std::string region;    // empty: AWS_REGION, AWS_DEFAULT_REGION or us-east-1
  // How a URL names the bucket: in its path, or in its host. Only AWS' own endpoint takes the host
  // by default, because others rarely have names for buckets.
  enum class Style { kDefault, kPath, kHost } style = Style::kDefault;
};

// file:///FOLDER
struct FolderPlace {
  std::string folder;
};

// Errors: INVALID_ARGUMENT, whose message continues a sentence that begins with the setting's name.
absl::StatusOr<std::variant<S3Place, FolderPlace>> ParseObjectPlace(std::string_view text);

// Returns the URL without anything after host and port, and without a port that its scheme has by
// default, because that is how libcurl writes the field Host, which is signed.
absl::StatusOr<std::string> ParseEndpoint(std::string_view url);

}  // namespace wan::server
