#include "server/objects/signer.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/sha.h>

#include <algorithm>
#include <array>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace wan::server {
namespace {

using Fields = std::vector<std::pair<std::string, std::string>>;

constexpr char kAlgorithm[] = "AWS4-HMAC-SHA256";
constexpr char kScopeEnd[] = "s3/aws4_request";

std::string Sha256HexOf(std::string_view bytes) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
  SHA256(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), digest.data());
  return absl::BytesToHexString({reinterpret_cast<const char*>(digest.data()), digest.size()});
}

std::string Hmac(std::string_view key, std::string_view text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> code{};
  unsigned int size = 0;
  HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
       reinterpret_cast<const unsigned char*>(text.data()), text.size(), code.data(), &size);
  return {reinterpret_cast<const char*>(code.data()), size};
}

// Returns the value without spaces at its ends, and with single spaces inside.
std::string Trimmed(std::string value) {
  absl::RemoveExtraAsciiWhitespace(&value);
  return value;
}

// Returns the header fields of the canonical request, sorted by name.
Fields SignedFields(const S3Request& request, const Fields& added) {
  Fields fields = added;
  fields.emplace_back("host", request.host);
  fields.insert(fields.end(), request.fields.begin(), request.fields.end());
  std::sort(fields.begin(), fields.end());
  return fields;
}

}  // namespace

std::string UriEncode(std::string_view text, bool keep_slashes) {
  std::string encoded;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (absl::ascii_isalnum(byte) || c == '-' || c == '.' || c == '_' || c == '~' ||
        (c == '/' && keep_slashes)) {
      encoded += c;
    } else {
      absl::StrAppend(&encoded, "%",
                      absl::AsciiStrToUpper(absl::BytesToHexString(absl::string_view(&c, 1))));
    }
  }
  return encoded;
}

std::string CanonicalQuery(const Fields& query) {
  Fields encoded;
  for (const auto& [name, value] : query) {
    encoded.emplace_back(UriEncode(name, false), UriEncode(value, false));
  }
  std::sort(encoded.begin(), encoded.end());
  return absl::StrJoin(encoded, "&", absl::PairFormatter("="));
}

Fields Sign(const S3Request& request, const S3Credentials& credentials, std::string_view region,
            absl::Time now) {
  const std::string time = absl::FormatTime("%Y%m%dT%H%M%SZ", now, absl::UTCTimeZone());
  const std::string date = time.substr(0, time.find('T'));
  const std::string payload = Sha256HexOf(request.body);
  Fields added = {{"x-amz-content-sha256", payload}, {"x-amz-date", time}};
  if (!credentials.session_token.empty()) {
    added.emplace_back("x-amz-security-token", credentials.session_token);
  }
  std::string lines;
  std::vector<std::string> names;
  for (const auto& [name, value] : SignedFields(request, added)) {
    absl::StrAppend(&lines, name, ":", Trimmed(value), "\n");
    names.push_back(name);
  }
  const std::string signed_names = absl::StrJoin(names, ";");
  const std::string canonical =
      absl::StrCat(request.method, "\n", request.path, "\n", CanonicalQuery(request.query), "\n",
                   lines, "\n", signed_names, "\n", payload);
  const std::string scope = absl::StrCat(date, "/", std::string(region), "/", kScopeEnd);
  const std::string to_sign =
      absl::StrCat(kAlgorithm, "\n", time, "\n", scope, "\n", Sha256HexOf(canonical));
  std::string key = Hmac("AWS4" + credentials.secret_key, date);
  for (const std::string_view part :
       {region, std::string_view("s3"), std::string_view("aws4_request")}) {
    key = Hmac(key, part);
  }
  Fields fields = request.fields;
  fields.insert(fields.end(), added.begin(), added.end());
  fields.emplace_back("authorization",
                      absl::StrCat(kAlgorithm, " Credential=", credentials.access_key, "/", scope,
                                   ", SignedHeaders=", signed_names,
                                   ", Signature=", absl::BytesToHexString(Hmac(key, to_sign))));
  return fields;
}

}  // namespace wan::server
