// Maps a caller's token or client certificate to a principal.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "server/auth/file_stamp.h"
#include "server/auth/token_file.h"

namespace wan::server {

// UNAUTHENTICATED: the call has no token, and its connection has no client certificate.
inline constexpr std::string_view kReasonCredentialsMissing = "CREDENTIALS_MISSING";
// UNAUTHENTICATED: the token or certificate belongs to no principal.
inline constexpr std::string_view kReasonCredentialsUnknown = "CREDENTIALS_UNKNOWN";
// PERMISSION_DENIED: the principal's role may not call the method.
inline constexpr std::string_view kReasonRoleRequired = "ROLE_REQUIRED";

struct AuthenticationOptions {
  // Path of the file of principals; empty: no caller has a token or a named certificate.
  std::string token_file;
  // Whether TLS asks callers for client certificates and verifies them.
  bool client_certificates = false;
  // The role of certificates whose subject is not in the file; the subject is then the principal's
  // name. Nullopt: the server refuses such certificates.
  std::optional<Role> certificate_role;
  // The authenticator calls on_problem with the error when the file has changed and is invalid, on
  // any thread and with no lock held.
  std::function<void(const absl::Status&)> on_problem = [](const absl::Status&) {};
};

// The credentials that came with a call.
struct Presented {
  // The values of the metadata `authorization`; at most one is allowed.
  std::vector<std::string_view> authorization;
  // The subject of the connection's client certificate; empty without one.
  std::string_view certificate_subject;
};

// Thread-safe. Without a token file and client certificates every caller is an administrator
// without a name.
class Authenticator {
 public:
  // Reads the token file. Returns ReadTokenFile's errors, each beginning with the setting
  // `auth_tokens`.
  static absl::StatusOr<std::unique_ptr<Authenticator>> Open(AuthenticationOptions options);

  bool enabled() const { return !options_.token_file.empty() || options_.client_certificates; }

  // Returns the principal of the token if there is one, otherwise of the certificate. Returns
  // UNAUTHENTICATED if the call has neither; the message says which credentials the server accepts.
  // Reads the token file again if it has changed since the last call, so a token is refused from
  // the first call after its revocation. If the changed file is invalid, calls on_problem once and
  // keeps the principals read before.
  absl::StatusOr<Principal> Identify(const Presented& presented);

  // Reads the token file again even if it has not changed. Returns an error if the file is invalid;
  // the principals read before then stay in force. Does nothing and returns OK if the server has no
  // token file.
  absl::Status Reload();

 private:
  explicit Authenticator(AuthenticationOptions options) : options_(std::move(options)) {}

  void Refresh() ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status ReadAgain() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<Principal> OfToken(std::string_view authorization) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<Principal> OfSubject(std::string_view subject) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Missing() const;

  const AuthenticationOptions options_;
  absl::Mutex mutex_;
  FileStamp stamp_ ABSL_GUARDED_BY(mutex_);
  std::vector<Credential> credentials_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace wan::server
