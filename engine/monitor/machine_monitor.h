// The DeviceMonitor of a real machine. It reads /proc for the CPU, and the allocator, NVML and GPM
// for the GPU.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "engine/api/clock.h"
#include "engine/api/device_monitor.h"
#include "engine/monitor/nvml.h"
#include "engine/monitor/proc_stats.h"

namespace wan {

// Bytes that the GPU's caching allocator has handed out.
struct AllocatorBytes {
  uint64_t now = 0;
  uint64_t peak = 0;  // since the last reset
};

// Reads the GPU's allocator. It has no types of LibTorch, so that tests can fake it.
class AllocatorProbe {
 public:
  virtual ~AllocatorProbe() = default;
  // Returns the current bytes and the peak since the last call, and restarts the peak.
  virtual AllocatorBytes ReadAndResetPeak() = 0;
  // Returns the same without restarting the peak.
  virtual AllocatorBytes Read() = 0;
};

class MachineMonitor final : public DeviceMonitor {
 public:
  // `gpu_name` is "cuda:0" and so on, or empty without a GPU. `allocator` and `nvml` may be null:
  // their figures are absent then.
  MachineMonitor(std::string gpu_name, std::unique_ptr<AllocatorProbe> allocator,
                 std::unique_ptr<NvmlDevice> nvml, const Clock& clock = SystemClock());

  std::unique_ptr<ResourceProbe> StartProbe() override;
  std::vector<DeviceSample> Sample() override;

 private:
  class Probe;

  struct TimedGpmSample {
    int64_t nanos = 0;
    std::unique_ptr<GpmSample> sample;
  };

  // What the machine says about itself; every figure may be absent.
  struct Readings {
    int64_t nanos = 0;
    std::optional<CpuTicks> ticks;
    std::optional<uint64_t> system_memory_used_bytes;
    std::optional<uint64_t> process_memory_peak_bytes;
    std::optional<uint64_t> gpu_memory_used_bytes;
    std::optional<double> gpu_utilization_percent;
  };

  // Returns the last readings if they are recent enough, else new ones: they take files of the
  // kernel and calls to the driver, a third of a millisecond in all.
  const Readings& ReadingsNow() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns the last sample if it is recent enough, else a new one; null without GPM. A sample is a
  // call to the driver, and stages of small videos begin and end hundreds of times a second.
  std::shared_ptr<const TimedGpmSample> GpmNow() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns the mean SM activity from `from` until now; nullopt if too little time has passed.
  std::optional<double> SmActivitySince(const TimedGpmSample& from)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Reads the allocator and folds its peak into every open probe: probes overlap, but the allocator
  // has one peak.
  AllocatorBytes FoldPeak() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string gpu_name_;
  const std::unique_ptr<AllocatorProbe> allocator_;
  const std::unique_ptr<NvmlDevice> nvml_;
  const Clock& clock_;
  const std::string cpu_name_;

  absl::Mutex mutex_;
  std::set<Probe*> open_ ABSL_GUARDED_BY(mutex_);
  // Start of the current interval of Sample(), whose CPU and SM figures are means since the call
  // before.
  std::optional<CpuTicks> last_ticks_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<const TimedGpmSample> interval_gpm_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<const TimedGpmSample> newest_gpm_ ABSL_GUARDED_BY(mutex_);
  std::optional<Readings> readings_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace wan
