#include "server/objects/object_request.h"

namespace wan::server {

std::string_view NameOf(ObjectOperation operation) {
  switch (operation) {
    case ObjectOperation::kPut:
      return "put";
    case ObjectOperation::kGet:
      return "get";
    case ObjectOperation::kStat:
      return "stat";
    case ObjectOperation::kList:
      return "list";
    case ObjectOperation::kRemove:
      return "remove";
    case ObjectOperation::kMultipart:
      break;
  }
  return "multipart";
}

std::string_view NameOf(ObjectOutcome outcome) {
  switch (outcome) {
    case ObjectOutcome::kOk:
      return "ok";
    case ObjectOutcome::kNotFound:
      return "not_found";
    case ObjectOutcome::kRefused:
      return "refused";
    case ObjectOutcome::kFailed:
      return "failed";
    case ObjectOutcome::kUnreachable:
      break;
  }
  return "unreachable";
}

}  // namespace wan::server
