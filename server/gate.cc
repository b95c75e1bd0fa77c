#include "server/gate.h"

#include <utility>

#include "absl/time/time.h"
#include "server/part_options.h"

namespace wan::server {

absl::StatusOr<std::unique_ptr<Gate>> Gate::Open(const ServerConfig& config, Clock& clock,
                                                 Logger& logger, Hooks hooks) {
  std::unique_ptr<Gate> gate(new Gate(clock));
  if (!config.tls_cert.empty()) {
    absl::StatusOr<std::unique_ptr<TlsFiles>> files = TlsFiles::Open(
        {config.tls_cert, config.tls_key, config.tls_client_ca}, clock, hooks.on_problem,
        [&logger](const TlsMaterial& material) {
          logger.Log(LogLevel::kInfo, "certificate",
                     {{"expires", absl::FormatTime(material.expiry, absl::UTCTimeZone())}});
        });
    if (!files.ok()) return files.status();
    gate->tls_ = *std::move(files);
  }
  absl::StatusOr<std::unique_ptr<Authenticator>> authenticator =
      Authenticator::Open({config.auth_tokens, !config.tls_client_ca.empty(),
                           CertificateRoleOf(config), hooks.on_problem});
  if (!authenticator.ok()) return authenticator.status();
  gate->authenticator_ = *std::move(authenticator);
  if (config.quotas.empty()) {
    gate->quotas_ = std::make_unique<Quotas>();
  } else {
    absl::StatusOr<std::unique_ptr<Quotas>> quotas =
        Quotas::Open(config.quotas, {hooks.on_quotas, hooks.on_problem});
    if (!quotas.ok()) return quotas.status();
    gate->quotas_ = *std::move(quotas);
  }
  if (config.audit_log.empty()) {
    gate->audit_ = std::make_unique<AuditLog>(logger, clock);
  } else {
    absl::StatusOr<std::unique_ptr<AuditLog>> file =
        AuditLog::ToFile(config.audit_log, logger, clock);
    if (!file.ok()) return file.status();
    gate->audit_ = *std::move(file);
  }
  gate->keeper_ = std::make_unique<Gatekeeper>(
      *gate->authenticator_, *gate->audit_, std::move(hooks.owner_of),
      PublicServices{config.health_access == ServiceAccess::kPublic,
                     config.reflection_access == ServiceAccess::kPublic},
      *gate->quotas_, gate->rates_, gate->callers_, std::move(hooks.watch));
  return gate;
}

void Gate::AddTo(Reloader& reloader) {
  const ServerConfig config = reloader.current();
  if (!config.auth_tokens.empty()) {
    reloader.Add({"auth_tokens", [this] { return authenticator_->Reload(); }});
  }
  if (!config.quotas.empty()) reloader.Add({"quotas", [this] { return quotas_->Reload(); }});
  if (tls_ != nullptr) reloader.Add({"tls_cert", [this] { return tls_->Reload(); }});
}

}  // namespace wan::server
