// Work of a GPU that is recorded once and can then be queued with a single call.
#pragma once

#include <c10/core/Device.h>

#include <functional>
#include <memory>

namespace wan {

// Work that was recorded on a device. Replayed kernels use the memory addresses of the recording.
// So destroy the graph before any of that memory moves.
class DeviceGraph {
 public:
  virtual ~DeviceGraph() = default;

  // Queues the work on the stream that LibTorch uses in the calling thread. Exceptions of LibTorch
  // pass through.
  virtual void Replay() = 0;
};

// Records graphs. Thread-safe.
class DeviceGraphRecorder {
 public:
  virtual ~DeviceGraphRecorder() = default;

  // Calls `work`, and records the work that it queues on the device without executing it. `work`
  // must neither wait for the device nor copy between device and host. Device memory that `work`
  // allocates comes from a pool that all graphs of the device share. Tensors that `work` returns
  // keep their memory. The graph that is replayed next overwrites all other memory of the pool.
  // Throws what `work` throws, and c10::Error if the device cannot record it. In both cases nothing
  // is recorded, and the device stays usable.
  virtual std::unique_ptr<DeviceGraph> Record(const std::function<void()>& work) = 0;
};

// Returns null for a CPU, and for a GPU if the plug-in is not loaded.
std::shared_ptr<DeviceGraphRecorder> MakeDeviceGraphRecorder(c10::Device device);

}  // namespace wan
