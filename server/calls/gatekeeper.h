// Identifies the caller of every call and decides whether it may make the call.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "engine/api/clock.h"
#include "server/auth/authenticator.h"
#include "server/auth/method_rules.h"
#include "server/auth/principal.h"
#include "server/calls/admission.h"
#include "server/calls/budget.h"
#include "server/calls/caller_directory.h"
#include "server/logging/audit_log.h"
#include "server/quota/call_rates.h"
#include "server/quota/quotas.h"
#include "wan/v1/generation.pb.h"

namespace wan::server {

// Returns the owner of a job, "jobs/ID". NOT_FOUND, or INVALID_ARGUMENT if the name is not a job's.
using OwnerOf =
    std::function<absl::StatusOr<std::string>(std::string_view job, std::string_view field)>;

// Called at the end of every call, also of refused ones, with the path of the method's rule (empty
// if there is none), the status and the time since the call was entered. Any thread; must not
// block.
struct CallWatch {
  Clock& clock;
  std::function<void(std::string_view path, const absl::Status& status, absl::Duration taken)>
      on_end;
};

// One call that was let in. Thread-safe.
class Call {
 public:
  // Audit log and watch must outlive the call. `everybody`: the caller was not identified.
  Call(const MethodRule& rule, Principal caller, bool everybody, std::string peer, OwnerOf owner_of,
       AuditLog& audit, const CallWatch& watch);
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
  // A call that was not ended is recorded as one whose caller went away.
  ~Call();

  const Principal& caller() const { return caller_; }
  // The party whose budgets and turns this caller shares: the principal, or the connection of an
  // unidentified caller.
  const std::string& party() const { return party_; }
  // The party for the budgets of this call, which came by `front`.
  Party TakerOf(Front front) const { return {party_, front, everybody_}; }
  Effect effect() const;
  // The class of the call's work.
  WorkClass work() const { return rule_.work; }
  // The trace that the caller sent; without an ID it sent none. Set it before others see the call.
  const wan::v1::TraceContext& trace() const { return trace_; }
  void SetTrace(wan::v1::TraceContext trace) { trace_ = std::move(trace); }
  // The owner whose jobs the caller may see; nullopt: all owners.
  std::optional<std::string> VisibleOwner() const;

  // Returns the principal about which the call asks: the caller itself if `asked` is empty.
  // PERMISSION_DENIED (ROLE_REQUIRED) unless it is the caller, or the caller an administrator.
  absl::StatusOr<std::string> PrincipalOrSelf(const std::string& asked) const;

  // Reads the call's object from the request. Call it once, before CheckResource.
  void Read(const google::protobuf::Message& request);

  // Sets the call's object if only the work finds it.
  void About(std::string_view resource);
  void AboutMessage(const google::protobuf::Message& response);

  // NOT_FOUND, as for a job that does not exist, if the call is about a job that the caller may not
  // see. May read the store.
  absl::Status CheckResource() const;

  // Writes the call's entry of the audit log, if it has one. Returns the status to send. File paths
  // are removed unless the caller is an administrator.
  absl::Status End(const absl::Status& status);

 private:
  const MethodRule& rule_;
  const Principal caller_;
  const bool everybody_;
  const std::string peer_;
  const std::string party_;
  const OwnerOf owner_of_;
  AuditLog& audit_;
  const CallWatch& watch_;
  const int64_t began_nanos_;
  wan::v1::TraceContext trace_;
  mutable absl::Mutex mutex_;
  std::string resource_ ABSL_GUARDED_BY(mutex_);
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
};

// Which of gRPC's standard services callers may use without credentials.
struct PublicServices {
  bool health = true;
  bool reflection = false;
};

// Thread-safe.
class Gatekeeper {
 public:
  // All must outlive the gatekeeper and its calls.
  Gatekeeper(Authenticator& authenticator, AuditLog& audit, OwnerOf owner_of,
             PublicServices public_services, Quotas& quotas, CallRates& rates,
             const CallerDirectory& callers, CallWatch watch);

  // The directory of callers connected to gRPC.
  const CallerDirectory& callers() const { return callers_; }

  // Decides whether a caller with these credentials may call `path`
  // ("/wan.v1.VideoGeneration/GetJob"). Does not block. `peer` is the caller's address as gRPC
  // writes it: "ipv4:192.0.2.7:41234". UNAUTHENTICATED; PERMISSION_DENIED if the principal's role
  // is too low, or the method has no rule; RESOURCE_EXHAUSTED (QUOTA_EXCEEDED) if the principal
  // calls more often than its quota says. Administrators may always call, so that an operator can
  // act, unless the server does not authenticate its callers. A refusal is written to the audit
  // log; those of a principal that calls too often once in a minute.
  absl::StatusOr<std::shared_ptr<Call>> Enter(const Presented& presented, std::string_view peer,
                                              std::string_view path) const;

 private:
  absl::StatusOr<std::shared_ptr<Call>> Decide(const Presented& presented, std::string_view peer,
                                               std::string_view path, const MethodRule* rule) const;
  // Whether the call needs no credentials.
  bool IsPublic(const MethodRule& rule) const;

  Authenticator& authenticator_;
  AuditLog& audit_;
  const OwnerOf owner_of_;
  const PublicServices public_services_;
  Quotas& quotas_;
  CallRates& rates_;
  const CallerDirectory& callers_;
  const CallWatch watch_;
};

}  // namespace wan::server
