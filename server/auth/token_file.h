// Reads and writes the file of principals (docs/operate/security.md): their roles, and hashes of
// their tokens or subjects of their client certificates.
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

// Returns the SHA-256 of a token, as the file stores it. One round of SHA-256 is enough, because
// 256 random bits cannot be guessed.
std::string HashOfToken(std::string_view token);

// Returns INVALID_ARGUMENT unless `name` is 1 to 63 letters, digits, '.', '_', '-' and '@'.
absl::Status CheckPrincipalName(std::string_view name);

// Returns INVALID_ARGUMENT if lines are wrong; the message has "SOURCE:LINE: ..." for each of them.
absl::StatusOr<std::vector<Credential>> ParseTokenFile(std::string_view text,
                                                       std::string_view source);
std::string TokenFileText(const std::vector<Credential>& credentials);

// Errors: NOT_FOUND if the file does not exist; FAILED_PRECONDITION if the file is not a regular
// file, is larger than 8 MiB, or is writable by everybody; and those of ParseTokenFile.
absl::StatusOr<std::vector<Credential>> ReadTokenFile(const std::string& path);

// Replaces the token file atomically. The new file can be read by its owner only (mode 0600).
absl::Status WriteTokenFile(const std::string& path, const std::vector<Credential>& credentials);

// Adds a credential to the token file; creates the file if it is missing. Holds a lock meanwhile,
// so that no other process changes the file.
absl::Status AddCredential(const std::string& path, const Credential& credential);

// Returns the id by which people name a credential: the first digits of the token's hash, or the
// whole subject.
std::string IdOf(const Credential& credential);

// Removes all credentials of the principal, or only the one with `id` if `id` is not empty.
absl::StatusOr<int> RevokeCredentials(const std::string& path, std::string_view principal,
                                      std::string_view id);

}  // namespace wan::server
