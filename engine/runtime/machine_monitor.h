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
#include "engine/api/device_monitor.h"
#include "engine/runtime/nvml.h"
#include "engine/runtime/proc_stats.h"

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
                 std::unique_ptr<NvmlDevice> nvml);

  std::unique_ptr<ResourceProbe> StartProbe() override;
  std::vector<DeviceSample> Sample() override;

 private:
  class Probe;

  // Stretches overlap while the allocator has one peak: each reading is folded into every open
  // stretch.
  AllocatorBytes FoldPeak() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string gpu_name_;
  const std::unique_ptr<AllocatorProbe> allocator_;
  const std::unique_ptr<NvmlDevice> nvml_;
  const std::string cpu_name_;

  absl::Mutex mutex_;
  std::set<Probe*> open_ ABSL_GUARDED_BY(mutex_);
  // Start of the current interval of Sample(), whose CPU and SM figures are means since the call
  // before.
  std::optional<CpuTicks> last_ticks_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<GpmSample> last_gpm_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace wan
