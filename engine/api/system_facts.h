// Facts for reports about the machine on which a job ran. A figure that is unknown is absent, a
// name that is unknown is empty.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace wan {

// A GPU as its driver describes it. Nothing of it changes while the process runs.
struct GpuFacts {
  std::string name;  // "NVIDIA H200"
  std::string uuid;  // "GPU-...", as NVML and DCGM's exporter have it
  std::string driver_version;
  std::optional<uint64_t> memory_total_bytes;
  std::optional<double> power_limit_watts;  // what the card may draw
  std::optional<double> sm_clock_max_mhz;
  std::optional<double> memory_clock_max_mhz;
  bool has_gpm = false;  // the card has GPM counters, and they are switched on
};

struct SystemFacts {
  std::string libtorch_version;  // "2.11.0"
  std::string cuda_version;      // empty on a CPU, as is the next one
  std::string cudnn_version;
  std::string cpu_name;
  int cpu_cores = 0;                           // logical ones that this process may use
  std::optional<uint64_t> memory_total_bytes;  // of the machine or its container
  std::optional<GpuFacts> gpu;                 // absent on a CPU
};

}  // namespace wan
