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
  // The status by its name in the protocol: "SERVING", "NOT_SERVING" or "UNKNOWN".
  std::string status;
  // Why it is NOT_SERVING (long lists are shortened); empty for older servers.
  google::protobuf::RepeatedPtrField<wan::v1::NotServingReason> reasons;
};

class HealthClient {
 public:
  // `connection` must outlive this object.
  explicit HealthClient(const Connection& connection);

  // Returns the health of a service. An empty service is the whole server, which is NOT_SERVING
  // while it loads, drains, or cannot run jobs. NOT_FOUND for a service that the server does not
  // know.
  absl::StatusOr<Health> Check(const std::string& service = "",
                               const std::stop_token& stop = {}) const;

 private:
  const Connection& connection_;
};

}  // namespace wan::client
