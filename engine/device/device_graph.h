// GPU work that is recorded once and then queued with a single host call.
#pragma once

#include <c10/core/Device.h>

#include <functional>
#include <memory>

namespace wan {

// Recorded work. Its kernels use the addresses from the recording, so destroy the graph before any
// of that memory moves.
class DeviceGraph {
 public:
  virtual ~DeviceGraph() = default;

  // Queues the work on the stream that LibTorch uses in the calling thread. Throws what LibTorch
  // throws.
  virtual void Replay() = 0;
};

// Thread-safe.
class DeviceGraphRecorder {
 public:
  virtual ~DeviceGraphRecorder() = default;

  // Calls `work` and records what it queues on the device, without executing it. `work` may neither
  // wait for the device nor copy between it and the host. Device memory that `work` allocates comes
  // from a pool that all graphs of the device share: tensors that `work` returns keep their memory,
  // the rest is overwritten by the next graph that is replayed. Throws what `work` throws, and
  // c10::Error if the device cannot record it; nothing is recorded then, and the device stays
  // usable.
  virtual std::unique_ptr<DeviceGraph> Record(const std::function<void()>& work) = 0;
};

// Returns null for a CPU, and for a GPU whose plug-in is not loaded.
std::shared_ptr<DeviceGraphRecorder> MakeDeviceGraphRecorder(c10::Device device);

}  // namespace wan
