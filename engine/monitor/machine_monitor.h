// The DeviceMonitor of a real machine. It reads /proc and the allocator on demand; a GpuSampler
// provides the driver's figures.
#pragma once

#include <cstdint>
#include <deque>
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
#include "engine/monitor/gpu_sampler.h"
#include "engine/monitor/nvml.h"
#include "engine/monitor/proc_stats.h"
#include "engine/monitor/ticker.h"

namespace wan {

// Bytes of the GPU's caching allocator.
struct AllocatorBytes {
  uint64_t now = 0;            // bytes handed out
  uint64_t peak = 0;           // most bytes handed out since the last reset
  uint64_t reserved_peak = 0;  // most bytes taken from the driver since the last reset
  uint64_t weights_peak = 0;   // most bytes that weights held at once since the last reset
};

// Reads the GPU's allocator. Free of LibTorch's types, so that tests can fake it. May throw if the
// device is lost.
class AllocatorProbe {
 public:
  virtual ~AllocatorProbe() = default;
  // Returns the current bytes and the peaks since the last call, and resets the peaks.
  virtual AllocatorBytes ReadAndResetPeak() = 0;
  // Returns the same without resetting the peaks.
  virtual AllocatorBytes Read() = 0;
};

class MachineMonitor final : public DeviceMonitor {
 public:
  using ReadMemory = std::function<std::optional<ProcessMemory>()>;

  // `gpu_name` is, for example, "cuda:0", or empty without a GPU. `allocator` and `nvml` may be
  // null; their figures are then absent. The clock must outlive the monitor. `read_memory` is
  // called from any thread, one call at a time.
  MachineMonitor(std::string gpu_name, std::unique_ptr<AllocatorProbe> allocator,
                 std::unique_ptr<NvmlDevice> nvml, Clock& clock = SystemClock(),
                 ReadMemory read_memory = ReadProcessMemory);
  ~MachineMonitor() override;

  // Starts the thread that calls Tick() 20 times a second while the monitor lives. Without it GPU
  // figures are absent, timelines have no points, and the process's memory is read only at a
  // probe's start and end. Call it at most once.
  void StartSampling();

  // Takes one sample. Called by the thread, or by a test instead.
  void Tick();

  // The driver's facts about the GPU; nullopt without NVML.
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

  // Shared with the thread, which is abandoned if the driver call never returns.
  const std::shared_ptr<State> state_;
  std::unique_ptr<Ticker> ticker_;
};

}  // namespace wan
