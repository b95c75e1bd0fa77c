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
  kFiles,     // reads artifacts
};
inline constexpr size_t kWorkClasses = 5;

struct MethodRule {
  // "/wan.v1.VideoGeneration/GetJob" for gRPC, "GET /v1/videos/{id}" for HTTP.
  std::string_view path;
  // The lowest role that may call the method.
  Role least = Role::kAdmin;
  WorkClass work = WorkClass::kQuick;
  // Whether every call is written to the audit log. Refused calls always are.
  bool audited = true;
  // The request's field with the name of the object that the call is about, such as "name" or
  // "job.name"; for HTTP the variable in the path. Empty: the request names no existing object.
  std::string_view resource_field = {};
  // Whether that object is a job or belongs to one. A caller who is neither the job's owner nor an
  // administrator gets NOT_FOUND.
  bool owned = false;
  // Whether everybody may call it, because the answer holds nothing of this server; nobody asks who
  // the caller is.
  bool open = false;
};

// Returns all rules, in the order of docs/operate/security.md.
const std::vector<MethodRule>& MethodRules();

// Returns null for an unknown method.
const MethodRule* FindMethodRule(std::string_view path);

// Returns the string field of `request` at this path of field names; empty if an inner message is
// not set. A test checks that every path of the table exists in its method's request.
std::string FieldText(const google::protobuf::Message& request, std::string_view path);

}  // namespace wan::server
