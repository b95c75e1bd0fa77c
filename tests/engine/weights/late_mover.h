// A second queue for tests that shows who does not wait for it.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/full.h>
#include <c10/util/Exception.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "engine/weights/weight_mover.h"

namespace wan {

// A device with two queues in logical time. Its copies happen as late as they may: when the
// computing or the host waits for them; until then its memory holds rubbish. Its computing is as
// far behind: what the host said it reads (ComputeWith) counts as unread until somebody waits for
// a mark that was taken later, and a copy into memory that is still to be read is an error of the
// test. After the allocations of `fail_after` it has no memory left. Copies may be queued and
// waited for by several threads.
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
    at::Tensor memory = Bytes(bytes);
    ComputeWith(memory);  // by whoever had it before
    return memory;
  }
  Mark MarkCompute() override {
    const std::scoped_lock lock(mutex_);
    return std::make_shared<Point>(Point{0, queued_});
  }
  Mark CopyToDevice(const at::Tensor& host, const at::Tensor& device, const Mark& after) override {
    if (on_copy) on_copy();
    const std::scoped_lock lock(mutex_);
    EXPECT_NE(after, nullptr) << "a copy must wait for whoever had the memory before";
    if (after != nullptr) {
      EXPECT_GE(PointOf(after).computed, LastUse(device))
          << "a copy overwrites memory that queued computing still reads";
    }
    copied += host.numel();
    outstanding_ += host.numel();
    most_outstanding = std::max(most_outstanding, outstanding_);
    queue_.push_back([this, host, device] {
      std::memcpy(device.mutable_data_ptr(), host.const_data_ptr(), host.nbytes());
      outstanding_ -= host.numel();
    });
    return std::make_shared<Point>(Point{queue_.size(), 0});
  }
  void ComputeAfter(const Mark& copy) override {
    const std::scoped_lock lock(mutex_);
    if (copy != nullptr) RunCopies(PointOf(copy).copies);
  }
  void WaitFor(const Mark& mark) noexcept override {
    if (mark == nullptr) return;
    const std::scoped_lock lock(mutex_);
    RunCopies(PointOf(mark).copies);
    computed_ = std::max(computed_, PointOf(mark).computed);
  }
  void CopyToHost(const at::Tensor& device, const at::Tensor& host) override {
    ++copies_to_host;
    if (on_copy_to_host) on_copy_to_host();
    host.copy_(device);
  }

  // Queues computing that reads or writes `memory`; gives its place in the computing queue.
  uint64_t ComputeWith(const at::Tensor& memory) {
    const std::scoped_lock lock(mutex_);
    const auto* const begin = static_cast<const std::byte*>(memory.storage().data());
    uses_.push_back({begin, begin + memory.storage().nbytes(), ++queued_});
    return queued_;
  }
  // The place in the computing queue up to which the host has waited.
  uint64_t computed() const {
    const std::scoped_lock lock(mutex_);
    return computed_;
  }

  std::function<void()> on_copy;  // before each copy to the device, on the thread that queues it
  std::function<void()> on_copy_to_host;
  int fail_after = -1;
  int64_t allocated = 0;
  // Bytes to the device; to be read while nothing is being queued.
  int64_t copied = 0;
  int64_t most_outstanding = 0;  // that were queued and not done
  int copies_to_host = 0;

 private:
  // All copies and all computing before it. Marks of one queue say nothing about the other.
  struct Point {
    size_t copies = 0;
    uint64_t computed = 0;
  };
  struct Use {
    const std::byte* begin = nullptr;
    const std::byte* end = nullptr;
    uint64_t place = 0;
  };

  static const Point& PointOf(const Mark& mark) { return *static_cast<const Point*>(mark.get()); }
  static at::Tensor Bytes(int64_t bytes) {
    return at::full({bytes}, 0xEE, at::TensorOptions().dtype(at::kByte));
  }
  void RunCopies(size_t end) {
    for (; done_ < end; ++done_) queue_[done_]();
  }
  uint64_t LastUse(const at::Tensor& memory) const {
    const auto* const begin = static_cast<const std::byte*>(memory.const_data_ptr());
    const auto* const end = begin + memory.nbytes();
    uint64_t last = 0;
    for (const Use& use : uses_) {
      if (use.begin < end && begin < use.end) last = std::max(last, use.place);
    }
    return last;
  }

  mutable std::mutex mutex_;
  std::vector<std::function<void()>> queue_;
  size_t done_ = 0;
  int64_t outstanding_ = 0;
  std::vector<Use> uses_;
  uint64_t queued_ = 0;
  uint64_t computed_ = 0;
};

}  // namespace wan
