// Copies weights on a second queue of the device while its first queue computes.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>

namespace wan {

// Each component has a mover of its own. Only the thread that computes with the component may call
// MarkCompute and ComputeAfter; any thread may call the other methods. Exceptions of LibTorch pass
// through.
class WeightMover {
 public:
  // A mark: a point in one of the device's two queues. A null mark stands for a point that the
  // device has passed.
  using Mark = std::shared_ptr<void>;

  virtual ~WeightMover() = default;

  // Returns whether the device computes in host memory, as a CPU does.
  virtual bool DeviceIsHost() const = 0;

  // Returns a kByte tensor of shape [bytes] in host memory, from which the device can copy fast.
  virtual at::Tensor AllocateHost(int64_t bytes) = 0;
  // Returns a kByte tensor of shape [bytes] in device memory. Kernels that are already queued may
  // still read that memory, so pass CopyToDevice a mark that was taken after this call.
  virtual at::Tensor AllocateDevice(int64_t bytes) = 0;

  // Returns a mark after all work that is on the computing queue at this moment.
  virtual Mark MarkCompute() = 0;

  // Queues a copy of `host` to `device` that begins once the mark `after` is passed; returns the
  // mark after the copy. `host` and `device` are kByte tensors of the same size, and must live
  // until the copy is done.
  virtual Mark CopyToDevice(const at::Tensor& host, const at::Tensor& device,
                            const Mark& after) = 0;

  // Makes all work that is queued for computing after this call wait for the mark `copy`.
  virtual void ComputeAfter(const Mark& copy) = 0;

  // Blocks until the device has done all work before `mark`. The call also returns if the device is
  // lost; then the next call that needs the device throws.
  virtual void WaitFor(const Mark& mark) noexcept = 0;

  // Copies `device` to `host`; the copy is complete when the call returns.
  virtual void CopyToHost(const at::Tensor& device, const at::Tensor& host) = 0;
};

// Returns a mover for the device. On a CPU the mover copies in the calling thread; on a GPU it
// copies on its own stream.
std::unique_ptr<WeightMover> MakeWeightMover(at::Device device);

}  // namespace wan
