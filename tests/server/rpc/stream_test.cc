// How a stream pumps, without gRPC: what it starts before a call is bound to it is only kept.
#include "server/rpc/stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/synchronization/notification.h"
#include "wan/v1/video_generation.pb.h"

namespace wan::server {
namespace {

using ::testing::ElementsAre;
using Message = wan::v1::GetJobRequest;

// Does what its script says, one entry a call, and writes down what happened.
class ScriptedStream final : public Stream<Message> {
 public:
  enum class Step { kMessage, kPending, kPendingWhileWoken, kEnd };

  ScriptedStream(WorkerPool& pool, std::vector<Step> script, std::vector<std::string>* calls)
      : Stream(pool), script_(std::move(script)), calls_(calls) {}
  ~ScriptedStream() override { calls_->push_back("gone"); }

  absl::Notification& pending() { return pending_; }

 private:
  Next Produce(Message* /*message*/, absl::Status* /*status*/) override {
    calls_->push_back("produce");
    switch (script_[next_++]) {
      case Step::kMessage:
        return Next::kMessage;
      case Step::kPendingWhileWoken:
        Wake();  // as a source does that has something just now
        return Next::kPending;
      case Step::kPending:
        pending_.Notify();
        return Next::kPending;
      case Step::kEnd:
        return Next::kEnd;
    }
    return Next::kEnd;
  }
  void OnAbandoned() override { calls_->push_back("abandoned"); }

  const std::vector<Step> script_;
  size_t next_ = 0;
  std::vector<std::string>* const calls_;
  absl::Notification pending_;
};

class StreamTest : public ::testing::Test {
 protected:
  using Step = ScriptedStream::Step;
  using Reactor = grpc::ServerWriteReactor<Message>;

  Reactor* Begin(std::vector<Step> script) {
    auto stream = std::make_shared<ScriptedStream>(*pool_, std::move(script), &calls_);
    stream_ = stream.get();
    return ScriptedStream::Begin(std::move(stream));
  }

  // Waits until the pool has nothing to do any more.
  void Drain() { pool_ = nullptr; }

  std::vector<std::string> calls_;
  std::unique_ptr<WorkerPool> pool_ = std::make_unique<WorkerPool>(WorkLimits::Same(1));
  ScriptedStream* stream_ = nullptr;
};

TEST_F(StreamTest, AWakeThatComesWhileNothingIsThereYetIsNotLost) {
  Reactor* const reactor = Begin({Step::kPendingWhileWoken, Step::kEnd});
  Drain();
  EXPECT_THAT(calls_, ElementsAre("produce", "produce"));
  reactor->OnDone();
  EXPECT_EQ(calls_.back(), "gone");
}

TEST_F(StreamTest, AWakeContinuesAStreamThatWaits) {
  Reactor* const reactor = Begin({Step::kPending, Step::kEnd});
  stream_->pending().WaitForNotification();
  stream_->Wake();
  Drain();
  EXPECT_THAT(calls_, ElementsAre("produce", "produce"));
  reactor->OnDone();
}

TEST_F(StreamTest, NothingIsProducedWhileAWriteIsInFlight) {
  Reactor* const reactor = Begin({Step::kMessage, Step::kEnd});
  for (int i = 0; i < 10; ++i) stream_->Wake();
  Drain();
  EXPECT_THAT(calls_, ElementsAre("produce"));
  reactor->OnDone();
}

TEST_F(StreamTest, AWriteThatFailedIsTheEnd) {
  absl::Notification written;
  Reactor* const reactor = Begin({Step::kPending, Step::kMessage});
  stream_->pending().WaitForNotification();
  stream_->Wake();
  // The pool has one thread: this runs after what was posted before.
  pool_->Post(WorkClass::kQuick, "", nullptr, [&](const absl::Status&) { written.Notify(); });
  written.WaitForNotification();
  reactor->OnWriteDone(false);
  Drain();
  EXPECT_THAT(calls_, ElementsAre("produce", "produce", "abandoned"));
  reactor->OnDone();
}

TEST_F(StreamTest, ACallerThatGoesEndsAStreamThatWaits) {
  Reactor* const reactor = Begin({Step::kPending});
  stream_->pending().WaitForNotification();
  reactor->OnCancel();
  Drain();
  EXPECT_THAT(calls_, ElementsAre("produce", "abandoned"));
  reactor->OnDone();
}

}  // namespace
}  // namespace wan::server
