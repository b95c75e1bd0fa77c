// The client for wan.v1.Administration, whose calls are for operators. As in VideoClient, every
// function blocks, may be called from several threads at once, and returns CANCELLED early when a
// stop is requested; client/error.h describes the errors. No call is retried.
#pragma once

#include <stop_token>

#include "absl/status/statusor.h"
#include "client/connection.h"
#include "wan/v1/administration.pb.h"

namespace wan::client {

class AdministrationClient {
 public:
  // `connection` must outlive this object.
  explicit AdministrationClient(const Connection& connection);

  // Drains the server and returns when the server can be stopped. If the call ends early, the drain
  // goes on; call again to wait for its end.
  absl::StatusOr<wan::v1::DrainResponse> Drain(const wan::v1::DrainRequest& request,
                                               const std::stop_token& stop = {}) const;

  // Reverts a drain. Calls of Drain that wait end with ABORTED.
  absl::StatusOr<wan::v1::UndrainResponse> Undrain(const std::stop_token& stop = {}) const;

 private:
  const Connection& connection_;
};

}  // namespace wan::client
