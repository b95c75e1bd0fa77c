// The client for grpc.health.v1.Health, which tells whether the server is ready for jobs. As in
// VideoClient, the function blocks, may be called from several threads at once, and returns
// CANCELLED early when a stop is requested; client/error.h describes the errors. No call is
// retried.
#pragma once

#include <google/protobuf/repeated_field.h>

#include <stop_token>
#include <string>

#include "absl/status/statusor.h"
#include "client/connection.h"
#include "wan/v1/telemetry.pb.h"

namespace wan::client {

struct Health {
  // The name that the protocol gives the status: "SERVING", "NOT_SERVING" or "UNKNOWN".
  std::string status;
  // Why the status is NOT_SERVING (long lists are shortened); older servers send no reasons.
  google::protobuf::RepeatedPtrField<wan::v1::NotServingReason> reasons;
};

class HealthClient {
 public:
  // `connection` must outlive this object.
  explicit HealthClient(const Connection& connection);

  // Returns the health of a service. An empty name means the whole server, which is NOT_SERVING
  // while it loads, drains, or cannot run jobs. Fails with NOT_FOUND for a service that the server
  // does not know.
  absl::StatusOr<Health> Check(const std::string& service = "",
                               const std::stop_token& stop = {}) const;

 private:
  const Connection& connection_;
};

}  // namespace wan::client
