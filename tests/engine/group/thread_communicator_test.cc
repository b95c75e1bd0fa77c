#include "engine/group/thread_communicator.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

#include "absl/functional/function_ref.h"

namespace wan {
namespace {

std::vector<c10::Device> Cpus(size_t ranks) { return {ranks, c10::Device(c10::kCPU)}; }

// What rank `from` sends to rank `to`: as many values as the receiver's number and one.
at::Tensor Message(int from, int to) { return at::full({to + 1}, 10 * from + to, at::kFloat); }

absl::Status ExchangeMessages(Communicator& end, std::vector<at::Tensor>& receive) {
  std::vector<at::Tensor> send;
  for (int peer = 0; peer < end.size(); ++peer) {
    send.push_back(Message(end.rank(), peer));
    receive.push_back(at::empty({end.rank() + 1}, at::kFloat));
  }
  return end.Exchange(send, receive);
}

TEST(ThreadGroupTest, GivesEveryRankWhatEveryOtherSentToIt) {
  const auto group = MakeThreadGroup(Cpus(3));
  group->Begin({});
  std::vector<std::vector<at::Tensor>> received(3);
  std::vector<absl::Status> statuses(3);
  {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < 3; ++rank) {
      threads.emplace_back([&, rank] {
        for (int round = 0; round < 20 && statuses[rank].ok(); ++round) {
          received[rank].clear();
          statuses[rank] = ExchangeMessages(group->End(rank), received[rank]);
        }
      });
    }
  }
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_TRUE(statuses[rank].ok());
    for (int peer = 0; peer < 3; ++peer) {
      EXPECT_TRUE(at::equal(received[rank][peer], Message(peer, rank))) << rank << " from " << peer;
    }
  }
}

TEST(ThreadGroupTest, CountsWhatARankSendsAndItsWaiting) {
  const auto group = MakeThreadGroup(Cpus(3));
  const auto meter = std::make_shared<ExchangeMeter>();
  group->CountIn(1, meter);
  const auto exchange = [&](bool fails) {
    group->Begin({});
    if (fails) group->Fail(absl::ResourceExhaustedError("no memory"));
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < 3; ++rank) {
      threads.emplace_back([&group, rank, fails] {
        if (fails && rank == 2) return;
        std::vector<at::Tensor> receive;
        EXPECT_EQ(ExchangeMessages(group->End(rank), receive).ok(), !fails);
      });
    }
  };
  exchange(false);
  const Exchanged once = meter->Read();
  EXPECT_EQ(once.sent_bytes, 4u * 4) << "one value to rank 0, and three to rank 2";
  EXPECT_GT(once.waited_seconds, 0);
  exchange(true);
  EXPECT_EQ(meter->Read().sent_bytes, once.sent_bytes) << "an exchange that fails does not count";
  EXPECT_EQ(meter->Read().waited_seconds, once.waited_seconds);
  exchange(false);
  EXPECT_EQ(meter->Read().sent_bytes, 2 * once.sent_bytes);
}

TEST(ThreadGroupTest, SeveralExchangesMayBePending) {
  const auto group = MakeThreadGroup(Cpus(3));
  group->Begin({});
  std::vector<std::vector<at::Tensor>> first(3);
  std::vector<std::vector<at::Tensor>> second(3);
  std::vector<absl::Status> statuses(3);
  const auto exchange = [&](int rank) -> absl::Status {
    Communicator& end = group->End(rank);
    const std::vector<at::Tensor> ranks(3, at::full({2}, rank, at::kFloat));
    const std::vector<at::Tensor> tens(3, at::full({1}, 10 * rank, at::kFloat));
    for (int peer = 0; peer < 3; ++peer) {
      first[rank].push_back(at::empty({2}, at::kFloat));
      second[rank].push_back(at::empty({1}, at::kFloat));
    }
    auto one = end.Start(ranks, first[rank]);
    auto other = end.Start(tens, second[rank]);
    if (!one.ok() || !other.ok()) return absl::InternalError("not begun");
    absl::Status status = (*one)->Await();
    status.Update((*other)->Await());
    return status;
  };
  {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < 3; ++rank) {
      threads.emplace_back([&, rank] { statuses[rank] = exchange(rank); });
    }
  }
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_TRUE(statuses[rank].ok()) << statuses[rank];
    for (int peer = 0; peer < 3; ++peer) {
      EXPECT_TRUE(at::equal(first[rank][peer], at::full({2}, peer, at::kFloat)));
      EXPECT_TRUE(at::equal(second[rank][peer], at::full({1}, 10 * peer, at::kFloat)));
    }
  }
}

// Returns what the exchanges of rank 1 end with when rank 0 does `work` and fails then.
absl::Status ExchangeUntilRank0Fails(CommunicatorGroup& group, absl::FunctionRef<void()> work) {
  absl::Status status;
  {
    const std::jthread waits([&] {
      while (status.ok()) {
        std::vector<at::Tensor> receive;
        status = ExchangeMessages(group.End(1), receive);
      }
    });
    work();
    group.Fail(absl::ResourceExhaustedError("rank 0 has no memory"));
  }
  return status;
}

TEST(ThreadGroupTest, ARankThatFailsWithAnExchangePendingLeavesNobodyWaiting) {
  const auto group = MakeThreadGroup(Cpus(2));
  group->Begin({});
  const absl::Status waited = ExchangeUntilRank0Fails(*group, [&] {
    const std::vector<at::Tensor> send = {Message(0, 0), Message(0, 1)};
    const std::vector<at::Tensor> receive = {at::empty({1}), at::empty({1})};
    EXPECT_TRUE(group->End(0).Start(send, receive).ok());  // and is dropped
  });
  EXPECT_TRUE(absl::IsResourceExhausted(waited)) << waited;
}

TEST(ThreadGroupTest, ARankThatFailsLeavesNobodyWaiting) {
  const auto group = MakeThreadGroup(Cpus(2));
  group->Begin({});
  EXPECT_TRUE(absl::IsResourceExhausted(ExchangeUntilRank0Fails(*group, [] {})));
  EXPECT_TRUE(absl::IsResourceExhausted(group->End(0).Agree()));
  // And the next forward is healthy.
  group->Begin({});
  EXPECT_TRUE(group->End(0).Agree().ok());
  absl::Status other;
  std::vector<at::Tensor> receive;
  {
    const std::jthread sends([&] {
      std::vector<at::Tensor> others;
      other = ExchangeMessages(group->End(1), others);
    });
    EXPECT_TRUE(ExchangeMessages(group->End(0), receive).ok());
  }
  EXPECT_TRUE(other.ok());
  EXPECT_TRUE(at::equal(receive[1], Message(1, 0)));
}

TEST(ThreadGroupTest, ShapesThatDoNotFitFailOnAllRanks) {
  const auto group = MakeThreadGroup(Cpus(2));
  group->Begin({});
  absl::Status other;
  absl::Status own;
  {
    const std::jthread sends([&] {
      std::vector<at::Tensor> receive;
      other = ExchangeMessages(group->End(1), receive);
    });
    const std::vector<at::Tensor> send = {Message(0, 0), at::full({7}, 1, at::kFloat)};
    const std::vector<at::Tensor> receive = {at::empty({1}), at::empty({1})};
    own = group->End(0).Exchange(send, receive);
  }
  EXPECT_TRUE(absl::IsInternal(other));
  EXPECT_TRUE(absl::IsInternal(own));
}

}  // namespace
}  // namespace wan
