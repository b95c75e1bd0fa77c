// A device's second queue, on which weights travel while the first one computes.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>

namespace wan {

// One object a component. MarkCompute and ComputeAfter are for the thread that computes with it,
// the others for any. What LibTorch throws passes through.
class WeightMover {
 public:
  // A point in the work of one of the two queues. Null: always past.
  using Mark = std::shared_ptr<void>;

  virtual ~WeightMover() = default;

  // True if the device computes with the host's own memory.
  virtual bool DeviceIsHost() const = 0;

  // kByte [bytes], in host memory that the device copies fast.
  virtual at::Tensor AllocateHost(int64_t bytes) = 0;
  // kByte [bytes]. Whoever had that memory before may still compute with it: MarkCompute() after
  // the call is what a copy into it waits for.
  virtual at::Tensor AllocateDevice(int64_t bytes) = 0;

  // Where the computing queue is now.
  virtual Mark MarkCompute() = 0;

  // Queues device := host, not before `after`; both are kByte of the same size and must live until
  // the copy is done. Gives the point at which it is.
  virtual Mark CopyToDevice(const at::Tensor& host, const at::Tensor& device,
                            const Mark& after) = 0;

  // What is computed from here on waits for `copy`.
  virtual void ComputeAfter(const Mark& copy) = 0;

  // Returns when all before `mark` is done, or will never be because the device is lost: what needs
  // the device next throws then.
  virtual void WaitFor(const Mark& mark) noexcept = 0;

  // host := device, done when the call returns.
  virtual void CopyToHost(const at::Tensor& device, const at::Tensor& host) = 0;
};

// For a CPU, where both queues are the caller itself, or a GPU, where the second one is a stream.
std::unique_ptr<WeightMover> MakeWeightMover(at::Device device);

}  // namespace wan
