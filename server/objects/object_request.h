// What metrics learn about each request to an object store.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

namespace wan::server {

enum class ObjectOperation { kPut, kGet, kStat, kList, kRemove, kMultipart };
inline constexpr ObjectOperation kObjectOperations[] = {
    ObjectOperation::kPut,  ObjectOperation::kGet,    ObjectOperation::kStat,
    ObjectOperation::kList, ObjectOperation::kRemove, ObjectOperation::kMultipart};

enum class ObjectOutcome {
  kOk,
  kNotFound,
  kRefused,      // the store says that the request may not be carried out
  kFailed,       // the store fails or is too busy; the request is tried again
  kUnreachable,  // no whole answer came; the request is tried again
};
inline constexpr ObjectOutcome kObjectOutcomes[] = {ObjectOutcome::kOk, ObjectOutcome::kNotFound,
                                                    ObjectOutcome::kRefused, ObjectOutcome::kFailed,
                                                    ObjectOutcome::kUnreachable};

// Return the words for labels, for example "put" and "ok".
std::string_view NameOf(ObjectOperation operation);
std::string_view NameOf(ObjectOutcome outcome);

// One HTTP request; a call of ObjectStore makes one or more.
struct ObjectRequest {
  ObjectOperation operation = ObjectOperation::kPut;
  ObjectOutcome outcome = ObjectOutcome::kOk;
  double seconds = 0;
  uint64_t sent = 0;      // bytes of the request's body
  uint64_t received = 0;  // bytes of the answer's body
};

using OnObjectRequest = std::function<void(const ObjectRequest&)>;

}  // namespace wan::server
