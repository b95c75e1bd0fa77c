// Turns a snapshot of the server into Prometheus' gauges and counters.
#pragma once

#include <vector>

#include "server/metrics/metrics.h"

namespace prometheus {
struct MetricFamily;
}

namespace wan::server {

// A value that is absent in the snapshot gives no sample, and a family without samples is left out.
std::vector<prometheus::MetricFamily> GaugesOf(const MetricsSnapshot& snapshot);

}  // namespace wan::server
