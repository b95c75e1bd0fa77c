// How far a gate lets the host run ahead of a device, and when it ends the work.
#include "engine/device/work_gate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

namespace wan {
namespace {

// A device that does nothing until somebody waits for it, so that what is outstanding is all that
// was queued since.
class LazyQueue final : public WorkQueue {
 public:
  Mark MarkEnd() override {
    ++marks;
    return std::make_shared<double>(queued);
  }
  void Await(const Mark& mark) override {
    ++waits;
    done = std::max(done, *static_cast<const double*>(mark.get()));
    if (on_wait != nullptr) on_wait->request_stop();
  }

  // What a component does between two calls of Pass.
  void Queue(double flops) {
    queued += flops;
    most_outstanding = std::max(most_outstanding, queued - done);
  }

  double queued = 0;
  double done = 0;
  double most_outstanding = 0;
  int marks = 0;
  int waits = 0;
  std::stop_source* on_wait = nullptr;
};

class WorkGateTest : public testing::Test {
 protected:
  // As many pieces as a gate lets pass, at most `count`.
  int Run(const WorkGate& gate, int count, double flops) {
    for (int i = 0; i < count; ++i) {
      queue_->Queue(flops);
      if (!gate.Pass(flops).ok()) return i;
    }
    return count;
  }

  const std::shared_ptr<LazyQueue> queue_ = std::make_shared<LazyQueue>();
  std::stop_source stop_;
};

TEST_F(WorkGateTest, HoldsTheHostBackWhileMuchIsOutstanding) {
  for (const double flops : {2.5e12, 7e12, 1e13, 1.7e13}) {
    SCOPED_TRACE(flops);
    *queue_ = {};
    EXPECT_EQ(Run(WorkGate(queue_, stop_.get_token()), 500, flops), 500);
    // What is queued between two marks comes besides.
    EXPECT_LE(queue_->most_outstanding,
              WorkGate::kMostOutstandingFlops + WorkGate::kFlopsBetweenMarks + 2 * flops);
    // The device always has something to do while the host waits.
    EXPECT_GE(queue_->most_outstanding, WorkGate::kMostOutstandingFlops / 2);
    EXPECT_GT(queue_->waits, 0);
  }
}

TEST_F(WorkGateTest, APieceThatIsTooLargeIsTheOnlyOneOutstandingButOne) {
  const double flops = 3 * WorkGate::kMostOutstandingFlops;
  EXPECT_EQ(Run(WorkGate(queue_, stop_.get_token()), 100, flops), 100);
  EXPECT_EQ(queue_->most_outstanding, 2 * flops);
  EXPECT_EQ(queue_->waits, 99) << "the device would run out of work";
}

TEST_F(WorkGateTest, SmallPiecesAreCountedToo) {
  EXPECT_EQ(Run(WorkGate(queue_, stop_.get_token()), 1000, 1), 1000);
  EXPECT_LE(queue_->most_outstanding, 24);
  EXPECT_LE(queue_->marks, 250) << "marks cost time";
}

TEST_F(WorkGateTest, NothingPassesAfterAStopRequest) {
  const WorkGate gate(queue_, stop_.get_token());
  EXPECT_TRUE(gate.Pass(1e13).ok());
  stop_.request_stop();
  EXPECT_EQ(gate.Pass(1e15).code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(gate.Pass().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(queue_->waits, 0) << "whoever was stopped must not wait for the device";
}

TEST_F(WorkGateTest, ARequestWhileItWaitsEndsTheWork) {
  queue_->on_wait = &stop_;
  const WorkGate gate(queue_, stop_.get_token());
  EXPECT_EQ(Run(gate, 100, WorkGate::kMostOutstandingFlops), 1);
  EXPECT_EQ(queue_->waits, 1);
}

TEST_F(WorkGateTest, CopiesShareWhatIsOutstanding) {
  const WorkGate gate(queue_, stop_.get_token());
  for (int i = 0; i < 100; ++i) {
    const WorkGate copy = gate;
    Run(copy, 1, 1e13);
  }
  EXPECT_LE(queue_->most_outstanding, WorkGate::kMostOutstandingFlops + 2e13);
}

TEST_F(WorkGateTest, WithoutADeviceOnlyTheRequestCounts) {
  EXPECT_TRUE(WorkGate().Pass(1e20).ok());
  const WorkGate of_token(stop_.get_token());
  const WorkGate of_cpu(c10::Device(c10::kCPU), stop_.get_token());
  EXPECT_TRUE(of_token.Pass(1e20).ok());
  EXPECT_TRUE(of_cpu.Pass(1e20).ok());
  stop_.request_stop();
  EXPECT_FALSE(of_token.Pass().ok());
  EXPECT_FALSE(of_cpu.Pass().ok());
  EXPECT_TRUE(WorkGate().Pass().ok());
}

}  // namespace
}  // namespace wan
