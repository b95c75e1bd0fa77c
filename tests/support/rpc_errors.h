// What an RPC's error carries, for tests.
#pragma once

#include <grpcpp/support/status.h>

#include <optional>
#include <set>
#include <string>

#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

namespace wan::support {

// The first detail of a type; nullopt if there is none.
template <typename Detail>
std::optional<Detail> DetailOf(const google::rpc::Status& status) {
  for (const auto& any : status.details()) {
    Detail detail;
    if (any.UnpackTo(&detail)) return detail;
  }
  return std::nullopt;
}

// The same of grpc-status-details-bin.
template <typename Detail>
std::optional<Detail> DetailOf(const grpc::Status& status) {
  google::rpc::Status decoded;
  if (!decoded.ParseFromString(status.error_details())) return std::nullopt;
  return DetailOf<Detail>(decoded);
}

// ErrorInfo's reason; empty without one.
inline std::string ReasonOf(const grpc::Status& status) {
  const auto info = DetailOf<google::rpc::ErrorInfo>(status);
  return info.has_value() ? info->reason() : "";
}

// The fields of BadRequest's violations; empty without one.
inline std::set<std::string> ViolatedFields(const grpc::Status& status) {
  std::set<std::string> fields;
  if (const auto bad = DetailOf<google::rpc::BadRequest>(status)) {
    for (const auto& violation : bad->field_violations()) fields.insert(violation.field());
  }
  return fields;
}

}  // namespace wan::support
