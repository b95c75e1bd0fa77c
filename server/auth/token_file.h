// The file of principals (docs/operate/security.md), with each one's role and its token or client
// certificate. It holds hashes of tokens, never a token.
//
//   alice user 2026-11-22T08:00:00Z sha256:9f86d081884c7d65...
//   ops admin 2026-11-22T08:00:00Z subject:CN=ops,O=Example
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/auth/principal.h"

namespace wan::server {

struct Credential {
  enum class Kind {
    kToken,    // `value` is the token's SHA-256, 64 lower-case hex digits
    kSubject,  // `value` is the subject of a client certificate as RFC 2253 writes it
  };
  Principal principal;
  absl::Time created;
  Kind kind = Kind::kToken;
  std::string value;

  friend bool operator==(const Credential&, const Credential&) = default;
};

// Returns a new token: "wan_" and 256 random bits in hex.
std::string NewToken();

// Returns the hash of a token that the file keeps. One round of SHA-256 is enough, because nobody
// can search through 256 random bits.
std::string HashOfToken(std::string_view token);

// INVALID_ARGUMENT unless `name` is 1 to 63 letters, digits, '.', '_', '-' and '@'.
absl::Status CheckPrincipalName(std::string_view name);

// INVALID_ARGUMENT, whose message has one line "SOURCE:LINE: ..." for each mistake.
absl::StatusOr<std::vector<Credential>> ParseTokenFile(std::string_view text,
                                                       std::string_view source);
std::string TokenFileText(const std::vector<Credential>& credentials);

// NOT_FOUND if there is no such file; FAILED_PRECONDITION if it is not a regular file, is larger
// than 8 MiB, or is writable by everybody; ParseTokenFile's errors.
absl::StatusOr<std::vector<Credential>> ReadTokenFile(const std::string& path);

// Replaces the file in one step: readers see the old one or the new one. Only its owner can read it
// (0600).
absl::Status WriteTokenFile(const std::string& path, const std::vector<Credential>& credentials);

// Adds one credential to the file, which is made if it is missing. Two processes that change one
// file wait for each other.
absl::Status AddCredential(const std::string& path, const Credential& credential);

// Returns the id by which people name a credential: the first digits of a token's hash, or the
// whole subject.
std::string IdOf(const Credential& credential);

// Removes the credentials of the principal, or with an `id` only that one, and returns how many
// there were; NOT_FOUND for none.
absl::StatusOr<int> RevokeCredentials(const std::string& path, std::string_view principal,
                                      std::string_view id);

}  // namespace wan::server
