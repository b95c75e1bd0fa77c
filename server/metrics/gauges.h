// Gauges of a moment, and counters that others keep, as Prometheus' families. A figure that is
// absent has no sample; a family without samples is left out.
#pragma once

#include <vector>

#include "server/metrics/metrics.h"

namespace prometheus {
struct MetricFamily;
}

namespace wan::server {

std::vector<prometheus::MetricFamily> GaugesOf(const MetricsSnapshot& snapshot);

}  // namespace wan::server
