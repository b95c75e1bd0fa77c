// Objects that all gRPC services share.
#pragma once

#include <stop_token>

#include "absl/time/time.h"
#include "engine/api/clock.h"

namespace wan::server {

class Admission;
class Gatekeeper;
class WorkerPool;

// The referenced objects must outlive the services.
struct ServiceShared {
  Clock& clock;  // times stalled calls and heartbeats
  const Gatekeeper& gatekeeper;
  Admission& admission;
  WorkerPool& pool;
  // A stream gets a heartbeat after this time without a message; zero: never.
  absl::Duration heartbeat_interval;
  // Requests a stop when the server stops, to end the streams that would never end otherwise.
  std::stop_token stopping;
};

}  // namespace wan::server
