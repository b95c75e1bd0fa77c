// A second queue for tests of uploads, which queue on several threads.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/full.h>
#include <c10/util/Exception.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>

#include "engine/weights/weight_mover.h"

namespace wan {

// A device whose copies happen when somebody waits for them and no earlier, so that a buffer that
// is filled again too early shows, and whoever reads what nobody waited for reads rubbish.
class SlowMover final : public WeightMover {
 public:
  ~SlowMover() override {
    EXPECT_EQ(copies, queued) << "copies on their way between dead memories";
  }

  bool DeviceIsHost() const override { return false; }
  at::Tensor AllocateHost(int64_t bytes) override {
    host_bytes += bytes;
    return Rubbish(bytes);
  }
  at::Tensor AllocateDevice(int64_t bytes) override { return Rubbish(bytes); }
  Mark MarkCompute() override { return std::make_shared<Copy>(); }
  Mark CopyToDevice(const at::Tensor& host, const at::Tensor& device, const Mark& after) override {
    EXPECT_NE(after, nullptr) << "a copy must wait for whoever had the memory before";
    if (on_copy) on_copy();
    ++queued;
    return std::make_shared<Copy>(host, device);
  }
  void ComputeAfter(const Mark& mark) override { WaitFor(mark); }
  void WaitFor(const Mark& mark) noexcept override {
    if (mark == nullptr) return;
    auto& copy = *static_cast<Copy*>(mark.get());
    std::call_once(copy.once, [&] {
      if (!copy.host.defined()) return;
      std::memcpy(copy.device.mutable_data_ptr(), copy.host.const_data_ptr(), copy.host.nbytes());
      ++copies;
    });
  }
  void CopyToHost(const at::Tensor& device, const at::Tensor& host) override {
    std::memcpy(host.mutable_data_ptr(), device.const_data_ptr(), device.nbytes());
  }

  std::function<void()> on_copy;  // on the thread that queues one
  std::atomic<int64_t> host_bytes = 0;
  std::atomic<int> queued = 0;
  std::atomic<int> copies = 0;

 private:
  struct Copy {
    Copy() = default;
    Copy(at::Tensor from, at::Tensor to) : host(std::move(from)), device(std::move(to)) {}
    at::Tensor host;
    at::Tensor device;
    std::once_flag once;
  };
  static at::Tensor Rubbish(int64_t bytes) {
    return at::full({bytes}, 0xEE, at::TensorOptions().dtype(at::kByte));
  }
};

}  // namespace wan
