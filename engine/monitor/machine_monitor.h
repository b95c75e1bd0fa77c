// The DeviceMonitor for a real machine. The monitor reads /proc and the allocator when it is asked.
// A GpuSampler provides the figures of the driver.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/api/clock.h"
#include "engine/api/device_monitor.h"
#include "engine/monitor/gpu_sampler.h"
#include "engine/monitor/nvml.h"
#include "engine/monitor/proc_stats.h"
#include "engine/monitor/ticker.h"

namespace wan {

// Figures of LibTorch's allocator for a GPU, in bytes.
struct AllocatorBytes {
  uint64_t now = 0;            // bytes that are allocated now
  uint64_t peak = 0;           // maximum of allocated bytes since the last reset
  uint64_t reserved_peak = 0;  // maximum of bytes taken from the driver since the last reset
  uint64_t weights_peak = 0;   // maximum of bytes of weights since the last reset
};

// Reads the allocator of a GPU. The interface does not use LibTorch, so that tests can replace it.
// The functions may throw if the device is lost.
class AllocatorProbe {
 public:
  virtual ~AllocatorProbe() = default;
  // Returns the current bytes and the peaks since the last call of this function, and resets the
  // peaks.
  virtual AllocatorBytes ReadAndResetPeak() = 0;
  // Returns the current bytes and the peaks, without resetting the peaks.
  virtual AllocatorBytes Read() = 0;
};

class MachineMonitor final : public DeviceMonitor {
 public:
  using ReadMemory = std::function<std::optional<ProcessMemory>()>;

  // `gpu_name` is for example "cuda:0"; empty if there is no GPU. `allocator` and `nvml` may be
  // null; then their figures are absent. The clock must outlive the monitor. `read_memory` may be
  // called from any thread, but only one call at a time.
  MachineMonitor(std::string gpu_name, std::unique_ptr<AllocatorProbe> allocator,
                 std::unique_ptr<NvmlDevice> nvml, Clock& clock = SystemClock(),
                 ReadMemory read_memory = ReadProcessMemory);
  ~MachineMonitor() override;

  // Starts a thread that calls Tick() 20 times a second as long as the monitor lives. Without that
  // thread, figures of the GPU are absent, timelines have no points, and the memory of the process
  // is read only when a probe starts and ends. Call the function only once.
  void StartSampling();

  // Takes one sample. The sampling thread calls Tick; tests may call Tick instead.
  void Tick();

  // Returns the driver's description of the GPU; nullopt without NVML.
  std::optional<GpuFacts> Gpu() const;

  std::unique_ptr<ResourceProbe> StartProbe() override;
  std::vector<DeviceSample> Sample() override;
  std::unique_ptr<DeviceReader> StartReader() override;
  std::unique_ptr<DeviceTimeline> StartTimeline() override;

 private:
  struct State;
  class Probe;
  class Reader;
  class Timeline;

  // The thread shares this state, because the thread is abandoned if a call of the driver never
  // returns.
  const std::shared_ptr<State> state_;
  std::unique_ptr<Ticker> ticker_;
};

}  // namespace wan
