// What all gRPC services share.
#pragma once

#include <stop_token>

#include "absl/time/time.h"
#include "engine/api/clock.h"

namespace wan::server {

class Admission;
class Gatekeeper;
class WorkerPool;

// All that is referred to must outlive the services.
struct ServiceShared {
  Clock& clock;  // calls that nobody reads for a while end by it
  const Gatekeeper& gatekeeper;
  Admission& admission;
  WorkerPool& pool;
  // How long a stream may carry nothing before it gets a heartbeat; zero: for ever.
  absl::Duration heartbeat_interval;
  // Ends the streams that have no other end.
  std::stop_token stopping;
};

}  // namespace wan::server
