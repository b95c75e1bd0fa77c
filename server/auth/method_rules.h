// Which role each method of each service needs. A method that is not in this table is refused, and
// a test fails as long as a method of a descriptor has no row.
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

// The kind of work that a call does. Each kind has threads of its own (server/calls/worker_pool.h),
// so that none waits for another.
enum class WorkClass {
  kQuick,     // answers from memory, or one row of the store; waits for nothing
  kPlans,     // plans a request, which takes milliseconds of a processor
  kDecoding,  // decodes pictures, which takes up to a second
  kStore,     // reads or changes many rows of the store
  kFiles,     // reads artifacts
};
inline constexpr size_t kWorkClasses = 5;

struct MethodRule {
  // As on the wire: "/wan.v1.VideoGeneration/GetJob"; over HTTP "GET /v1/videos/{id}".
  std::string_view path;
  // The least role that may call it.
  Role least = Role::kAdmin;
  WorkClass work = WorkClass::kQuick;
  // Whether every call is written to the audit log. Refused calls always are.
  bool audited = true;
  // The request's field that names the object of the call, such as "name" or "job.name"; over HTTP
  // the part of the path. Empty: the request names nothing that exists.
  std::string_view resource_field = {};
  // Whether that object is a job or belongs to one. A caller who is neither the job's owner nor an
  // administrator gets NOT_FOUND.
  bool owned = false;
  // Whether everybody may call it, because the answer holds nothing of this server; nobody asks who
  // the caller is.
  bool open = false;
};

// All rules, in the order of docs/operate/security.md.
const std::vector<MethodRule>& MethodRules();

// Returns null for an unknown method.
const MethodRule* FindMethodRule(std::string_view path);

// Returns the string field of `request` at this path of field names; empty if an inner message is
// not set. Every path of the table exists in its method's request (a test proves it).
std::string FieldText(const google::protobuf::Message& request, std::string_view path);

}  // namespace wan::server
