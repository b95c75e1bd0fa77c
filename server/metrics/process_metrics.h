// The standard metrics process_* of Prometheus' client libraries, which dashboards expect.
#pragma once

#include <string_view>
#include <vector>

#include "server/metrics/wire_stats.h"

namespace prometheus {
struct MetricFamily;
}

namespace wan::server {

// Figures about a process, read from /proc.
struct ProcessFigures {
  double cpu_seconds = 0;  // CPU time in user and system mode together
  double start_time = 0;   // in seconds since 1970
  double virtual_bytes = 0;
  double resident_bytes = 0;
  double threads = 0;
};

// Parses the content of /proc/PID/stat. `boot_time` is in seconds since 1970; `ticks` is the number
// of clock ticks in a second. Returns zeros if the text has another form.
ProcessFigures ParseProcessStat(std::string_view stat, double boot_time, double ticks,
                                double page_bytes);

// Appends the current figures of this process to `families`. Any thread may call AddProcess.
void AddProcess(const WireStats& wire, std::vector<prometheus::MetricFamily>& families);

}  // namespace wan::server
