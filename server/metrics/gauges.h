// Converts a snapshot of the server to Prometheus' gauges and counters.
#pragma once

#include <vector>

#include "server/metrics/metrics.h"

namespace prometheus {
struct MetricFamily;
}

namespace wan::server {

// A value that the snapshot lacks gives no sample; families without samples are left out.
std::vector<prometheus::MetricFamily> GaugesOf(const MetricsSnapshot& snapshot);

}  // namespace wan::server
