#include "engine/weights/weight_mover.h"

#include <ATen/DeviceAccelerator.h>
#include <ATen/ops/empty.h>
#include <c10/core/Event.h>
#include <c10/core/InferenceMode.h>
#include <c10/core/StreamGuard.h>
#include <c10/util/Exception.h>

#include <cstring>

#include "engine/device/pinned_memory.h"
#include "engine/device/thread_device.h"

namespace wan {
namespace {

class CpuMover final : public WeightMover {
 public:
  bool DeviceIsHost() const override { return true; }
  at::Tensor AllocateHost(int64_t bytes) override { return AllocateHostMemory(bytes, at::kCPU); }
  at::Tensor AllocateDevice(int64_t bytes) override {
    return at::empty({bytes}, at::TensorOptions().dtype(at::kByte));
  }
  Mark MarkCompute() override { return nullptr; }
  Mark CopyToDevice(const at::Tensor& host, const at::Tensor& device, const Mark&) override {
    std::memcpy(device.mutable_data_ptr(), host.const_data_ptr(), host.nbytes());
    return nullptr;
  }
  void ComputeAfter(const Mark&) override {}
  void WaitFor(const Mark&) noexcept override {}
  void CopyToHost(const at::Tensor& device, const at::Tensor& host) override {
    std::memcpy(host.mutable_data_ptr(), device.const_data_ptr(), device.nbytes());
  }
};

class StreamMover final : public WeightMover {
 public:
  explicit StreamMover(at::Device device) : device_(Entered(device)), stream_(MakeStream(device)) {}

  bool DeviceIsHost() const override { return false; }

  at::Tensor AllocateHost(int64_t bytes) override { return AllocateHostMemory(bytes, device_); }

  at::Tensor AllocateDevice(int64_t bytes) override {
    UseDeviceInThread(device_);
    return at::empty({bytes}, at::TensorOptions(device_).dtype(at::kByte));
  }

  Mark MarkCompute() override {
    UseDeviceInThread(device_);
    return Record(ComputeStream());
  }

  Mark CopyToDevice(const at::Tensor& host, const at::Tensor& device, const Mark& after) override {
    UseDeviceInThread(device_);
    const c10::InferenceMode inference;
    if (after != nullptr) EventOf(after).block(stream_);
    const c10::StreamGuard guard(stream_);
    device.copy_(host, /*non_blocking=*/true);
    return Record(stream_);
  }

  void ComputeAfter(const Mark& copy) override {
    if (copy == nullptr) return;
    UseDeviceInThread(device_);
    EventOf(copy).block(ComputeStream());
  }

  void WaitFor(const Mark& mark) noexcept override {
    if (mark == nullptr) return;
    try {
      UseDeviceInThread(device_);
      EventOf(mark).synchronize();
    } catch (const c10::Error&) {
      // Ignore the error: the device is lost, so no copy runs any more, and the next call to the
      // device reports it.
    }
  }

  void CopyToHost(const at::Tensor& device, const at::Tensor& host) override {
    UseDeviceInThread(device_);
    const c10::InferenceMode inference;
    host.copy_(device);
  }

 private:
  // Set the device, because StagedUpload calls the function on its threads, where no current device
  // is set.
  static at::Device Entered(at::Device device) {
    UseDeviceInThread(device);
    return device;
  }

  static c10::Stream MakeStream(at::Device device) {
    return c10::impl::VirtualGuardImpl(device.type())
        .getStreamFromGlobalPool(device, /*isHighPriority=*/true);
  }

  c10::Stream ComputeStream() const { return at::accelerator::getCurrentStream(device_.index()); }

  static const c10::Event& EventOf(const Mark& mark) {
    return *static_cast<const c10::Event*>(mark.get());
  }

  Mark Record(const c10::Stream& stream) const {
    auto event = std::make_shared<c10::Event>(device_.type());
    event->record(stream);
    return event;
  }

  const at::Device device_;
  const c10::Stream stream_;
};

}  // namespace

std::unique_ptr<WeightMover> MakeWeightMover(at::Device device) {
  if (device.is_cpu()) return std::make_unique<CpuMover>();
  return std::make_unique<StreamMover>(device);
}

}  // namespace wan
