// Reads the current figures of the gRPC ports for the metrics.
#pragma once

#include "server/calls/admission.h"
#include "server/metrics/wire_stats.h"
#include "server/rpc/grpc_port.h"

namespace wan::server {

// `admin_port` is null if `port` has the administrators' services. Any thread may call WireNow.
WireStats WireNow(GrpcPort& port, GrpcPort* admin_port, const Admission& admission);

}  // namespace wan::server
