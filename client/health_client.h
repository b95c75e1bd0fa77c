// grpc.health.v1.Health: whether the server is ready for jobs. As in VideoClient, the function
// blocks, may be called from several threads at once, and returns CANCELLED early when a stop is
// requested; client/error.h describes the errors. No call is retried.
#pragma once

#include <stop_token>
#include <string>

#include "absl/status/statusor.h"
#include "client/connection.h"

namespace wan::client {

class HealthClient {
 public:
  // `connection` must outlive this object.
  explicit HealthClient(const Connection& connection);

  // Returns the status of a service by its name in the protocol: "SERVING", "NOT_SERVING" or
  // "UNKNOWN". An empty service is the whole server, which is NOT_SERVING while it loads, drains,
  // or cannot run jobs. NOT_FOUND for a service that the server does not know.
  absl::StatusOr<std::string> Check(const std::string& service = "",
                                    const std::stop_token& stop = {}) const;

 private:
  const Connection& connection_;
};

}  // namespace wan::client
