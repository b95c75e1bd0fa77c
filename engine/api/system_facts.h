// Facts about the machine on which a job ran; reports contain them. Unknown figures are absent, and
// unknown names are empty.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace wan {

// A GPU as its driver describes it. Nothing here changes while the process runs.
struct GpuFacts {
  std::string name;  // for example "NVIDIA H200"
  std::string uuid;  // "GPU-...", as NVML and DCGM's exporter write it
  std::string driver_version;
  std::optional<uint64_t> memory_total_bytes;
  std::optional<double> power_limit_watts;  // the card's power limit
  std::optional<double> sm_clock_max_mhz;
  std::optional<double> memory_clock_max_mhz;
  bool has_gpm = false;  // true: the card has GPM counters, and they are enabled
};

struct SystemFacts {
  std::string libtorch_version;  // "2.11.0"
  std::string cuda_version;      // on a CPU both versions are empty
  std::string cudnn_version;
  std::string cpu_name;
  int cpu_cores = 0;                           // logical cores that this process may use
  std::optional<uint64_t> memory_total_bytes;  // memory of the machine or its container
  std::optional<GpuFacts> gpu;                 // absent on a CPU
};

}  // namespace wan
