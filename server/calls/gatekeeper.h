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
#include "server/calls/caller_directory.h"
#include "server/logging/audit_log.h"
#include "server/quota/budget.h"
#include "server/quota/call_rates.h"
#include "server/quota/quotas.h"
#include "wan/v1/generation.pb.h"

namespace wan::server {

// Returns the principal that owns a job. Errors: NOT_FOUND; INVALID_ARGUMENT if `job` does not have
// the form "jobs/ID".
using OwnerOf =
    std::function<absl::StatusOr<std::string>(std::string_view job, std::string_view field)>;

// The gatekeeper calls `on_end` at the end of every call, refused ones included, with the path of
// the method's rule (empty if the method has none), the status and the call's duration. The
// function runs on any thread and must not block.
struct CallWatch {
  Clock& clock;
  std::function<void(std::string_view path, const absl::Status& status, absl::Duration taken)>
      on_end;
};

// A call that Gatekeeper::Enter has admitted. Thread-safe.
class Call {
 public:
  // `audit` and `watch` must outlive the call. `everybody` says that the call needs no credentials.
  Call(const MethodRule& rule, Principal caller, bool everybody, std::string peer, OwnerOf owner_of,
       AuditLog& audit, const CallWatch& watch);
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
  // If nobody has called End, ends the call with CANCELLED, because the caller has gone.
  ~Call();

  const Principal& caller() const { return caller_; }
  // The party that is charged for the call: a principal, or the connection of an unidentified
  // caller. Calls of one party share budgets, and take turns as one in WorkerPool.
  const std::string& party() const { return party_; }
  // Returns the party for Admission; `front` is the protocol over which the call came.
  Party TakerOf(Front front) const { return {party_, front, everybody_}; }
  Effect effect() const;
  // Says which class of worker threads runs the call.
  WorkClass work() const { return rule_.work; }
  // The trace that the caller sent with the call; its ID is empty if the caller sent none. Set the
  // trace before other threads see the call.
  const wan::v1::TraceContext& trace() const { return trace_; }
  void SetTrace(wan::v1::TraceContext trace) { trace_ = std::move(trace); }
  // Returns the principal whose jobs the caller may see; nullopt: the jobs of all.
  std::optional<std::string> VisibleOwner() const;
  // Returns whether the caller may see the jobs of all principals.
  bool ReadsAll() const { return !VisibleOwner().has_value(); }

  // Returns `asked`, or the caller's own principal if `asked` is empty. Returns PERMISSION_DENIED
  // (ROLE_REQUIRED) if `asked` is another principal and the caller is not an administrator.
  absl::StatusOr<std::string> PrincipalOrSelf(const std::string& asked) const;

  // Reads from the request the name of the object that the call is about, for example its job. Call
  // Read once, before CheckResource.
  void Read(const google::protobuf::Message& request);

  // Sets the name of the object for calls whose request does not contain it.
  void About(std::string_view resource);
  void AboutMessage(const google::protobuf::Message& response);

  // Returns NOT_FOUND, as for an unknown job, if the call is about a job that the caller may not
  // see; otherwise OK. May block, because it reads the job's owner from the store.
  absl::Status CheckResource() const;

  // Writes the call's entry in the audit log if the method is audited. Returns the status to send
  // to the caller. Paths of files are removed from the status unless the caller is an
  // administrator.
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
  // All arguments must outlive the gatekeeper and its calls.
  Gatekeeper(Authenticator& authenticator, AuditLog& audit, OwnerOf owner_of,
             PublicServices public_services, Quotas& quotas, CallRates& rates,
             const CallerDirectory& callers, CallWatch watch);

  const CallerDirectory& callers() const { return callers_; }

  // Decides whether a caller with these credentials may call `path`
  // ("/wan.v1.VideoGeneration/GetJob"). Does not block. `peer` is the caller's address as gRPC
  // writes it: "ipv4:192.0.2.7:41234". Errors: UNAUTHENTICATED; PERMISSION_DENIED if the
  // principal's role is too low or the method has no rule; RESOURCE_EXHAUSTED (QUOTA_EXCEEDED) if
  // the principal exceeds its quota of calls per second. The quota does not apply to administrators
  // of a server that authenticates its callers, so that an operator can always act. The audit log
  // gets an entry for every refusal. Exception: if a principal calls too often, the refusals for
  // that make at most one entry a minute.
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
