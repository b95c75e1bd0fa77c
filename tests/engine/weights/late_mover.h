// A second queue for tests that shows who does not wait for it.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/full.h>
#include <c10/util/Exception.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <vector>

#include "engine/weights/weight_mover.h"

namespace wan {

// A device whose copies happen as late as they may: when the computing waits for them. Until then
// its memory holds rubbish, and after the allocations of `fail_after` it has none.
class LateMover final : public WeightMover {
 public:
  ~LateMover() override {
    EXPECT_EQ(done_, queue_.size()) << "copies on their way between memories that are gone";
  }

  bool DeviceIsHost() const override { return false; }
  at::Tensor AllocateHost(int64_t bytes) override { return Bytes(bytes); }
  at::Tensor AllocateDevice(int64_t bytes) override {
    TORCH_CHECK_WITH(OutOfMemoryError, fail_after-- != 0, "no room");
    allocated += bytes;
    return Bytes(bytes);
  }
  // No copies lie before it.
  Mark MarkCompute() override { return std::make_shared<size_t>(0); }
  Mark CopyToDevice(const at::Tensor& host, const at::Tensor& device, const Mark& after) override {
    EXPECT_NE(after, nullptr) << "a copy must wait for whoever had the memory before";
    copied += host.numel();
    queue_.push_back([host, device] { device.copy_(host); });
    return std::make_shared<size_t>(queue_.size());
  }
  void ComputeAfter(const Mark& copy) override {
    if (copy == nullptr) return;
    for (; done_ < *static_cast<const size_t*>(copy.get()); ++done_) queue_[done_]();
  }
  void WaitFor(const Mark& copy) noexcept override { ComputeAfter(copy); }
  void CopyToHost(const at::Tensor& device, const at::Tensor& host) override {
    ++copies_to_host;
    host.copy_(device);
  }

  int fail_after = -1;
  int64_t allocated = 0;
  int64_t copied = 0;
  int copies_to_host = 0;

 private:
  static at::Tensor Bytes(int64_t bytes) {
    return at::full({bytes}, 0xEE, at::TensorOptions().dtype(at::kByte));
  }
  std::vector<std::function<void()>> queue_;
  size_t done_ = 0;
};

}  // namespace wan
