#include "server/auth/authenticator.h"

#include <openssl/crypto.h>

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "engine/api/errors.h"
#include "engine/api/utf8.h"

namespace wan::server {
namespace {

constexpr std::string_view kScheme = "Bearer ";

absl::Status Unknown(std::string_view message) {
  return WithReason(absl::UnauthenticatedError(absl::string_view(message.data(), message.size())),
                    kReasonCredentialsUnknown);
}

bool HasScheme(std::string_view authorization) {
  return authorization.size() > kScheme.size() &&
         absl::EqualsIgnoreCase(absl::string_view(authorization.data(), kScheme.size()),
                                absl::string_view(kScheme.data(), kScheme.size()));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Authenticator>> Authenticator::Open(AuthenticationOptions options) {
  std::unique_ptr<Authenticator> opened(new Authenticator(std::move(options)));
  const std::string& path = opened->options_.token_file;
  if (path.empty()) return opened;
  absl::MutexLock lock(&opened->mutex_);
  opened->stamp_ = FileStamp::Of(path);
  absl::StatusOr<std::vector<Credential>> read = ReadTokenFile(path);
  if (!read.ok()) {
    return absl::Status(read.status().code(),
                        absl::StrCat("auth_tokens: ", read.status().message()));
  }
  opened->credentials_ = *std::move(read);
  return opened;
}

absl::StatusOr<Principal> Authenticator::Identify(const Presented& presented) {
  if (!enabled()) return Principal{};
  Refresh();
  if (presented.authorization.size() > 1) {
    return Unknown("the call has several values of the metadata 'authorization'; send one");
  }
  absl::MutexLock lock(&mutex_);
  if (!presented.authorization.empty()) return OfToken(presented.authorization.front());
  if (!presented.certificate_subject.empty()) return OfSubject(presented.certificate_subject);
  return Missing();
}

void Authenticator::Refresh() {
  if (options_.token_file.empty()) return;
  absl::Status problem;
  {
    absl::MutexLock lock(&mutex_);
    if (FileStamp::Of(options_.token_file) == stamp_) return;
    problem = ReadAgain();
  }
  if (!problem.ok()) options_.on_problem(problem);
}

absl::Status Authenticator::Reload() {
  if (options_.token_file.empty()) return absl::OkStatus();
  absl::MutexLock lock(&mutex_);
  return ReadAgain();
}

absl::Status Authenticator::ReadAgain() {
  // Take the stamp before reading, so that a change during the read is noticed next time.
  stamp_ = FileStamp::Of(options_.token_file);
  absl::StatusOr<std::vector<Credential>> read = ReadTokenFile(options_.token_file);
  if (!read.ok()) {
    return absl::Status(read.status().code(),
                        absl::StrCat("auth_tokens has changed and cannot be used, so the "
                                     "principals stay as they were: ",
                                     read.status().message()));
  }
  credentials_ = *std::move(read);
  return absl::OkStatus();
}

absl::StatusOr<Principal> Authenticator::OfToken(std::string_view authorization) const {
  if (!HasScheme(authorization)) {
    return Unknown("the metadata 'authorization' must be 'Bearer TOKEN'");
  }
  const std::string hash = HashOfToken(authorization.substr(kScheme.size()));
  const Credential* found = nullptr;
  // Compare all hashes, each in constant time, so that the duration reveals nothing about them.
  for (const Credential& credential : credentials_) {
    if (credential.kind != Credential::Kind::kToken) continue;
    if (CRYPTO_memcmp(credential.value.data(), hash.data(), hash.size()) == 0) found = &credential;
  }
  if (found != nullptr) return found->principal;
  return Unknown(
      "the token belongs to no principal of this server, or was revoked; ask an administrator for "
      "a new one");
}

absl::StatusOr<Principal> Authenticator::OfSubject(std::string_view subject) const {
  // The queue stores the subject as the owner of the caller's jobs, and stored texts must be UTF-8.
  if (!IsUtf8(subject)) {
    return Unknown("the client certificate's subject is not UTF-8, so it can be no principal");
  }
  for (const Credential& credential : credentials_) {
    if (credential.kind == Credential::Kind::kSubject && credential.value == subject) {
      return credential.principal;
    }
  }
  if (options_.certificate_role.has_value()) {
    return Principal{std::string(subject), *options_.certificate_role};
  }
  return Unknown(absl::StrCat("the client certificate's subject '", std::string(subject),
                              "' belongs to no principal of this server; ask an administrator to "
                              "add it"));
}

absl::Status Authenticator::Missing() const {
  return WithReason(
      absl::UnauthenticatedError(
          options_.token_file.empty()
              ? "the call has no credentials; connect with a client certificate"
              : "the call has no credentials; send the metadata 'authorization: Bearer TOKEN'"),
      kReasonCredentialsMissing);
}

}  // namespace wan::server
