// The file of principals (docs/operate/security.md): their roles, and hashes of their tokens or
// subjects of their client certificates.
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
    kSubject,  // `value` is the subject of a client certificate in RFC 2253 form
  };
  Principal principal;
  absl::Time created;
  Kind kind = Kind::kToken;
  std::string value;

  friend bool operator==(const Credential&, const Credential&) = default;
};

// Returns a new token: "wan_" and 256 random bits in hex.
std::string NewToken();

// Returns the hash of a token, as stored in the file. One round of SHA-256 is enough, because 256
// random bits cannot be guessed.
std::string HashOfToken(std::string_view token);

// INVALID_ARGUMENT unless `name` is 1 to 63 letters, digits, '.', '_', '-' and '@'.
absl::Status CheckPrincipalName(std::string_view name);

// INVALID_ARGUMENT with one line "SOURCE:LINE: ..." in the message for each mistake.
absl::StatusOr<std::vector<Credential>> ParseTokenFile(std::string_view text,
                                                       std::string_view source);
std::string TokenFileText(const std::vector<Credential>& credentials);

// NOT_FOUND if there is no such file; FAILED_PRECONDITION if it is not a regular file, is larger
// than 8 MiB, or is writable by everybody; ParseTokenFile's errors.
absl::StatusOr<std::vector<Credential>> ReadTokenFile(const std::string& path);

// Replaces the file atomically. Only its owner can read it (0600).
absl::Status WriteTokenFile(const std::string& path, const std::vector<Credential>& credentials);

// Adds a credential to the file, which is created if missing. Locks the file against other
// processes that change it.
absl::Status AddCredential(const std::string& path, const Credential& credential);

// Returns the id of a credential for people: the first digits of the token's hash, or the whole
// subject.
std::string IdOf(const Credential& credential);

// Removes all credentials of the principal, or only the one with `id` if it is not empty, and
// returns how many were removed; NOT_FOUND if none.
absl::StatusOr<int> RevokeCredentials(const std::string& path, std::string_view principal,
                                      std::string_view id);

}  // namespace wan::server
