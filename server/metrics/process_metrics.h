// The standard process_* metrics, which every Prometheus client library has and dashboards expect.
#pragma once

#include <string_view>
#include <vector>

#include "server/metrics/wire_stats.h"

namespace prometheus {
struct MetricFamily;
}

namespace wan::server {

// Figures of a process from /proc.
struct ProcessFigures {
  double cpu_seconds = 0;  // user and system
  double start_time = 0;   // seconds since 1970
  double virtual_bytes = 0;
  double resident_bytes = 0;
  double threads = 0;
};

// Reads the text of /proc/PID/stat. `boot_time`, `ticks` and `page_bytes` are the machine's:
// seconds since 1970, ticks a second, bytes of a page. Returns zeros if the text has another form.
ProcessFigures ParseProcessStat(std::string_view stat, double boot_time, double ticks,
                                double page_bytes);

// Appends the families of this process as of now. Any thread.
void AddProcess(const WireStats& wire, std::vector<prometheus::MetricFamily>& families);

}  // namespace wan::server
