// The table of all methods, with the role that each needs. A method without a row is refused, and a
// test checks that every method of the contract has one.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "server/auth/principal.h"

namespace google::protobuf {
class Message;
}

namespace wan::server {

// The kind of work that a call does. Each kind has threads of its own (server/calls/worker_pool.h).
enum class WorkClass {
  kQuick,     // reads memory or one row of the store; does not block for long
  kPlans,     // plans a request, which takes milliseconds of CPU time
  kDecoding,  // decodes images, which takes up to a second
  kStore,     // reads or changes many rows of the store
  kFiles,     // reads artifacts from the disk
};
inline constexpr size_t kWorkClasses = 5;

struct MethodRule {
  // The method's name: "/wan.v1.VideoGeneration/GetJob" for gRPC, "GET /v1/videos/{id}" for HTTP.
  std::string_view path;
  // The lowest role that may call the method.
  Role least = Role::kAdmin;
  WorkClass work = WorkClass::kQuick;
  // Whether the audit log gets an entry for every call of the method. The audit log gets an entry
  // for every refused call in any case.
  bool audited = true;
  // The field of the request that names the object that the call is about, such as "name" or
  // "job.name"; for HTTP the variable in the path. Empty: the request names no existing object.
  std::string_view resource_field = {};
  // Whether the object in resource_field is a job or belongs to one. A caller who is neither the
  // owner of that job nor an administrator gets NOT_FOUND.
  bool owned = false;
  // Whether callers need not say who they are, because the answer tells nothing about this server.
  bool open = false;
};

// Returns all rules, in the order of docs/operate/security.md.
const std::vector<MethodRule>& MethodRules();

// Returns the rule of the method; null for an unknown method.
const MethodRule* FindMethodRule(std::string_view path);

// Returns the string field of `request` at `path`, which joins field names by dots; empty if an
// inner message is not set. A test checks that every path of the table exists in its method's
// request.
std::string FieldText(const google::protobuf::Message& request, std::string_view path);

}  // namespace wan::server
