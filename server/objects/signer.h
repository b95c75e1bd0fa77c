// Signs requests to S3 with AWS Signature Version 4.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/time/time.h"

namespace wan::server {

struct S3Credentials {
  std::string access_key;
  std::string secret_key;
  std::string session_token;  // empty: the credentials are not temporary
};

struct S3Request {
  std::string method;
  std::string host;  // as in the header field Host
  std::string path;  // encoded with UriEncode
  // Not encoded, in any order.
  std::vector<std::pair<std::string, std::string>> query;
  // Further header fields to sign, with names in lower case.
  std::vector<std::pair<std::string, std::string>> fields;
  std::string_view body;
};

// Encodes every byte but letters, digits, '-', '.', '_' and '~' as %XX; `keep_slashes` also keeps
// '/'.
std::string UriEncode(std::string_view text, bool keep_slashes);

// Returns the query of a URL, encoded and sorted as the signature needs it: every name has a '='.
std::string CanonicalQuery(const std::vector<std::pair<std::string, std::string>>& query);

// Returns the header fields to send with the request: its own, x-amz-date, x-amz-content-sha256,
// x-amz-security-token and authorization, but not Host.
//
// The body's SHA-256 is part of every signature, over TLS as well: with it the service refuses
// bytes that a proxy, a disk or memory on the way has changed, and the artifact is complete before
// its job ends. UNSIGNED-PAYLOAD would save the hashing, about a second for each GiB.
std::vector<std::pair<std::string, std::string>> Sign(const S3Request& request,
                                                      const S3Credentials& credentials,
                                                      std::string_view region, absl::Time now);

}  // namespace wan::server
