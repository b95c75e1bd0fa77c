// Decides who may call the server. Holds the certificates, the principals, the quotas, the audit
// log, and the Gatekeeper, which uses all of these.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/api/clock.h"
#include "server/auth/authenticator.h"
#include "server/auth/tls_files.h"
#include "server/calls/caller_directory.h"
#include "server/calls/gatekeeper.h"
#include "server/config/server_config.h"
#include "server/logging/audit_log.h"
#include "server/logging/logger.h"
#include "server/process/reloader.h"
#include "server/quota/call_rates.h"
#include "server/quota/quotas.h"

namespace wan::server {

// Thread-safe.
class Gate {
 public:
  // The gate calls the hooks on threads of calls and of Reloader::Reload, with no lock held.
  struct Hooks {
    OwnerOf owner_of;
    std::function<void()> on_quotas = [] {};  // the gate calls on_quotas when quotas may have
                                              // changed
    CallWatch watch;
    // The gate calls this hook with the error when a changed file is invalid.
    std::function<void(const absl::Status&)> on_problem = [](const absl::Status&) {};
  };
  // Reads all files that the settings name; an error names the invalid file. The clock, the logger
  // and the objects that the hooks use must outlive the gate.
  static absl::StatusOr<std::unique_ptr<Gate>> Open(const ServerConfig& config, Clock& clock,
                                                    Logger& logger, Hooks hooks);
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;

  const Gatekeeper& keeper() const { return *keeper_; }
  CallerDirectory& callers() { return callers_; }
  Quotas& quotas() { return *quotas_; }
  TlsFiles* tls() { return tls_.get(); }  // null: the server speaks plain text
  // Whether callers must authenticate.
  bool authenticates() const { return authenticator_->enabled(); }
  AuditLog& audit() { return *audit_; }

  // Lets the reloader read the gate's files again.
  void AddTo(Reloader& reloader);

 private:
  explicit Gate(Clock& clock) : rates_(clock) {}

  CallRates rates_;
  CallerDirectory callers_;
  std::unique_ptr<TlsFiles> tls_;
  std::unique_ptr<Authenticator> authenticator_;
  std::unique_ptr<Quotas> quotas_;
  std::unique_ptr<AuditLog> audit_;
  std::unique_ptr<Gatekeeper> keeper_;
};

}  // namespace wan::server
