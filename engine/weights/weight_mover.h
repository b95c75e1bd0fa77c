// Copies weights on a device's second queue while the first one computes.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>

namespace wan {

// One object for each component. Only the thread that computes with the component may call
// MarkCompute and ComputeAfter; any thread may call the others. Exceptions of LibTorch pass
// through.
class WeightMover {
 public:
  // A point in one of the two queues. A null mark is a point that has passed.
  using Mark = std::shared_ptr<void>;

  virtual ~WeightMover() = default;

  // Whether the device computes in the host's memory.
  virtual bool DeviceIsHost() const = 0;

  // Returns a kByte tensor of shape [bytes] in host memory from which the device copies fast.
  virtual at::Tensor AllocateHost(int64_t bytes) = 0;
  // Returns a kByte tensor of shape [bytes] in device memory. Kernels that are queued may still
  // read the block, so pass CopyToDevice a Mark that was taken after this call.
  virtual at::Tensor AllocateDevice(int64_t bytes) = 0;

  // Returns a mark after all work that is on the computing queue now.
  virtual Mark MarkCompute() = 0;

  // Queues a copy of `host` to `device` that begins after the mark `after`; returns the mark after
  // the copy. Both tensors are kByte of the same size and must live until the copy is done.
  virtual Mark CopyToDevice(const at::Tensor& host, const at::Tensor& device,
                            const Mark& after) = 0;

  // Makes work that is queued for computing from now on wait for the mark `copy`.
  virtual void ComputeAfter(const Mark& copy) = 0;

  // Blocks until all work before `mark` is done. Also returns if the device is lost; the next call
  // that needs the device throws then.
  virtual void WaitFor(const Mark& mark) noexcept = 0;

  // Copies `device` to `host` before it returns.
  virtual void CopyToHost(const at::Tensor& device, const at::Tensor& host) = 0;
};

// Returns a mover for the device: on a CPU it copies in the calling thread, on a GPU on a stream of
// its own.
std::unique_ptr<WeightMover> MakeWeightMover(at::Device device);

}  // namespace wan
