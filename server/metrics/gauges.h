// Turns a snapshot of the server into Prometheus' gauges and counters.
#pragma once

#include <vector>

#include "server/metrics/metrics.h"

namespace prometheus {
struct MetricFamily;
}

namespace wan::server {

// A value that the snapshot lacks gives no sample; a family without samples is left out.
std::vector<prometheus::MetricFamily> GaugesOf(const MetricsSnapshot& snapshot);

}  // namespace wan::server
