#include "server/watch/not_serving.h"

#include "absl/strings/str_join.h"

namespace wan::server {

std::string CodesOf(const NotServingReasons& reasons) {
  return absl::StrJoin(reasons, ", ", [](std::string* out, const NotServing& reason) {
    out->append(reason.reason);
  });
}

std::string OneLine(const NotServingReasons& reasons) {
  return absl::StrJoin(reasons, "; ", [](std::string* out, const NotServing& reason) {
    out->append(reason.message);
  });
}

}  // namespace wan::server
