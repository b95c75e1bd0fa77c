// The DeviceMonitor of real machines: /proc for the CPU; allocator, NVML and GPM for the GPU.
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

// Reads the allocator of the GPU, without LibTorch's types so that tests can fake it.
class AllocatorProbe {
 public:
  virtual ~AllocatorProbe() = default;
  // Current bytes and the peak since the last call.
  virtual AllocatorBytes ReadAndResetPeak() = 0;
  // Without touching the peak.
  virtual AllocatorBytes Read() = 0;
};

class MachineMonitor final : public DeviceMonitor {
 public:
  // `gpu_name` is "cuda:0" and so on, empty without a GPU; `allocator` and `nvml` may be null.
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

  // The last sample if it is young enough to stand for now, else a new one; null without GPM.
  // Stages of small videos begin and end hundreds of times a second, and a sample is a call to the
  // driver.
  std::shared_ptr<const TimedGpmSample> GpmNow() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Mean SM activity from `from` until now; absent where too little time has gone by to tell.
  std::optional<double> SmActivitySince(const TimedGpmSample& from)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Stretches overlap while the allocator has one peak: each reading is folded into every open
  // stretch.
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
};

}  // namespace wan
