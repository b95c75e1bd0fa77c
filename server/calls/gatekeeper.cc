#include "server/calls/gatekeeper.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include "absl/strings/str_cat.h"
#include "engine/api/errors.h"
#include "server/conversion/errors.h"

namespace wan::server {
namespace {

constexpr std::string_view kHealth = "/grpc.health.";
constexpr std::string_view kHttpHealth = "GET /health";
constexpr std::string_view kReflection = "/grpc.reflection.";

// Returns the leading "jobs/ID" of a resource name.
std::string_view JobOf(std::string_view resource) {
  const size_t first = resource.find('/');
  if (first == std::string_view::npos) return resource;
  return resource.substr(0, resource.find('/', first + 1));
}

AuditEntry EntryOf(const Principal& principal, std::string_view method, std::string_view peer,
                   const absl::Status& status) {
  AuditEntry entry;
  entry.principal = principal.name;
  entry.role = std::string(NameOf(principal.role));
  entry.method = std::string(method);
  entry.peer = std::string(peer);
  entry.code = absl::StatusCodeToString(status.code());
  entry.reason = ReasonOf(status);
  return entry;
}

absl::Status RoleRequired(const Principal& principal, std::string_view what, Role least_role) {
  const std::string least(NameOf(least_role));
  absl::Status status =
      WithReason(absl::PermissionDeniedError(absl::StrCat(
                     std::string(what), " needs the role ", least, ", and the principal '",
                     principal.name, "' has the role ", std::string(NameOf(principal.role)))),
                 kReasonRoleRequired);
  status = WithMetadata(status, "required_role", least);
  return WithMetadata(status, "role", NameOf(principal.role));
}

// Returns the error without paths of the server's files.
absl::Status WithoutFiles(const absl::Status& status) {
  if (ReasonOf(status) == kReasonStorageUnavailable) {
    return WithMessage(status,
                       "the server's storage does not take reads and writes now; try again later");
  }
  if (ReasonOf(status) == kReasonModelNotReady) {
    return WithMessage(status,
                       "the model is not loaded; an administrator finds the cause with ListModels");
  }
  switch (status.code()) {
    case absl::StatusCode::kInternal:
    case absl::StatusCode::kUnknown:
    case absl::StatusCode::kDataLoss:
      return WithMessage(status,
                         "the server could not do this; an administrator finds the cause in "
                         "its log");
    default:
      return status;
  }
}

}  // namespace

Call::Call(const MethodRule& rule, Principal caller, bool everybody, std::string peer,
           OwnerOf owner_of, AuditLog& audit, const CallWatch& watch)
    : rule_(rule),
      caller_(std::move(caller)),
      everybody_(everybody),
      peer_(std::move(peer)),
      party_(caller_.name.empty() ? peer_ : absl::StrCat("principal:", caller_.name)),
      owner_of_(std::move(owner_of)),
      audit_(audit),
      watch_(watch),
      began_nanos_(watch.clock.MonotonicNanos()) {}

Call::~Call() { End(absl::CancelledError("the caller is gone")).IgnoreError(); }

Effect Call::effect() const {
  // Reads of files are audited as well, but they change nothing.
  const bool changes = rule_.audited && rule_.work != WorkClass::kFiles;
  return changes ? Effect::kChanges : Effect::kReads;
}

std::optional<std::string> Call::VisibleOwner() const {
  if (caller_.role == Role::kAdmin) return std::nullopt;
  return caller_.name;
}

absl::StatusOr<std::string> Call::PrincipalOrSelf(const std::string& asked) const {
  if (asked.empty() || asked == caller_.name) return caller_.name;
  if (caller_.role == Role::kAdmin) return asked;
  return RoleRequired(caller_, "another principal's use", Role::kAdmin);
}

void Call::Read(const google::protobuf::Message& request) {
  if (!rule_.resource_field.empty()) About(FieldText(request, rule_.resource_field));
}

void Call::About(std::string_view resource) {
  absl::MutexLock lock(&mutex_);
  resource_ = std::string(resource);
}

void Call::AboutMessage(const google::protobuf::Message& response) {
  const auto* const name = response.GetDescriptor()->FindFieldByName("name");
  if (name == nullptr || name->type() != google::protobuf::FieldDescriptor::TYPE_STRING) return;
  About(response.GetReflection()->GetString(response, name));
}

absl::Status Call::CheckResource() const {
  const std::optional<std::string> visible = VisibleOwner();
  if (!rule_.owned || !visible.has_value()) return absl::OkStatus();
  std::string job;
  {
    absl::MutexLock lock(&mutex_);
    job = std::string(JobOf(resource_));
  }
  const absl::StatusOr<std::string> owner = owner_of_(job, rule_.resource_field);
  if (!owner.ok()) return owner.status();
  // Use the message for an unknown job, so that callers cannot find out which jobs of others exist.
  return *owner == *visible ? absl::OkStatus() : JobNotFoundError(job);
}

absl::Status Call::End(const absl::Status& status) {
  std::string resource;
  bool first = false;
  {
    absl::MutexLock lock(&mutex_);
    first = !std::exchange(ended_, true);
    resource = resource_;
  }
  if (first) {
    watch_.on_end(rule_.path, status,
                  absl::Nanoseconds(watch_.clock.MonotonicNanos() - began_nanos_));
  }
  if (first && rule_.audited) {
    AuditEntry entry = EntryOf(caller_, rule_.path, peer_, status);
    entry.resource = std::move(resource);
    audit_.Write(entry);
  }
  return caller_.role == Role::kAdmin ? status : WithoutFiles(status);
}

Gatekeeper::Gatekeeper(Authenticator& authenticator, AuditLog& audit, OwnerOf owner_of,
                       PublicServices public_services, Quotas& quotas, CallRates& rates,
                       const CallerDirectory& callers, CallWatch watch)
    : authenticator_(authenticator),
      audit_(audit),
      owner_of_(std::move(owner_of)),
      public_services_(public_services),
      quotas_(quotas),
      rates_(rates),
      callers_(callers),
      watch_(std::move(watch)) {}

absl::StatusOr<std::shared_ptr<Call>> Gatekeeper::Enter(const Presented& presented,
                                                        std::string_view peer,
                                                        std::string_view path) const {
  const int64_t began_nanos = watch_.clock.MonotonicNanos();
  const MethodRule* const rule = FindMethodRule(path);
  absl::StatusOr<std::shared_ptr<Call>> call = Decide(presented, peer, path, rule);
  if (!call.ok()) {
    watch_.on_end(rule == nullptr ? std::string_view() : rule->path, call.status(),
                  absl::Nanoseconds(watch_.clock.MonotonicNanos() - began_nanos));
  }
  return call;
}

absl::StatusOr<std::shared_ptr<Call>> Gatekeeper::Decide(const Presented& presented,
                                                         std::string_view peer,
                                                         std::string_view path,
                                                         const MethodRule* rule) const {
  const bool open = rule != nullptr && IsPublic(*rule);
  const absl::StatusOr<Principal> principal =
      open ? Principal{"", Role::kViewer} : authenticator_.Identify(presented);
  absl::Status refused = principal.status();
  bool written = true;
  quotas_.Refresh();
  if (refused.ok() && !open && (principal->role < Role::kAdmin || principal->name.empty())) {
    const wan::v1::Quota quota = quotas_.Of(principal->name);
    if (quota.has_calls_per_second()) {
      CallRates::Decision decision = rates_.Admit(principal->name, quota.calls_per_second());
      refused = std::move(decision.status);
      written = refused.ok() || decision.first_refused;
    }
  }
  if (refused.ok() && rule == nullptr) {
    refused = absl::PermissionDeniedError(
        absl::StrCat("the server has no rule for ", std::string(path), ", so nobody may call it"));
  }
  if (refused.ok() && principal->role < rule->least) {
    refused = RoleRequired(*principal, rule->path, rule->least);
  }
  if (refused.ok()) {
    return std::make_shared<Call>(*rule, *principal, open, std::string(peer), owner_of_, audit_,
                                  watch_);
  }
  if (!written) return refused;
  AuditEntry entry = EntryOf(principal.ok() ? *principal : Principal{}, path, peer, refused);
  if (!principal.ok()) entry.role.clear();
  audit_.Write(entry);
  return refused;
}

bool Gatekeeper::IsPublic(const MethodRule& rule) const {
  return rule.open ||
         (public_services_.health &&
          (rule.path.starts_with(kHealth) || rule.path == kHttpHealth)) ||
         (public_services_.reflection && rule.path.starts_with(kReflection));
}

}  // namespace wan::server
