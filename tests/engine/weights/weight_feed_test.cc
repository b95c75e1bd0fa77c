// Copies that are queued piece by piece, on a device in logical time: how much is outstanding, and
// what a stop request finds.
#include "engine/weights/weight_feed.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/zeros.h>
#include <c10/util/Exception.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <span>
#include <stop_token>
#include <utility>
#include <vector>

#include "engine/device/torch_errors.h"
#include "engine/weights/component_weights.h"
#include "tests/engine/weights/late_mover.h"

namespace wan {
namespace {

constexpr FeedLimits kLimits = {.piece_bytes = 100, .window_bytes = 400};
constexpr size_t kGroups = 10;
constexpr int64_t kGroupBytes = 1050;  // the last piece of each is a small one

at::Tensor Numbers(int64_t bytes, int64_t first) {
  return at::arange(first, first + bytes).remainder(251).to(at::kByte);
}

struct Memories {
  Memories() {
    for (size_t g = 0; g < kGroups; ++g) {
      copies.push_back(
          {g, Numbers(kGroupBytes, static_cast<int64_t>(g)), at::zeros({kGroupBytes}, at::kByte)});
    }
  }
  std::vector<WeightFeed::Copy> copies;
};

absl::Status StatusOfAwait(WeightFeed& feed, size_t group) {
  return CatchTorchErrors("awaiting", [&] {
    feed.Await(group);
    return absl::OkStatus();
  });
}

TEST(WeightFeedTest, EveryGroupArrivesAndLittleIsOutstanding) {
  LateMover mover;
  const Memories memories;
  WeightFeed feed(mover, memories.copies, mover.MarkCompute(), {}, kLimits);
  for (const WeightFeed::Copy& copy : memories.copies) {
    mover.ComputeAfter(feed.Await(copy.group));
    EXPECT_TRUE(at::equal(copy.host, copy.device)) << copy.group;
  }
  feed.End();
  EXPECT_EQ(mover.copied, static_cast<int64_t>(kGroups) * kGroupBytes);
  EXPECT_LE(mover.most_outstanding, kLimits.window_bytes);
  EXPECT_GT(mover.most_outstanding, kLimits.window_bytes / 2) << "the link would run out of work";
}

TEST(WeightFeedTest, WhatFitsTheWindowIsQueuedByTheCaller) {
  LateMover mover;
  const Memories memories;
  WeightFeed feed(mover, {memories.copies[0]}, mover.MarkCompute(), {}, {.piece_bytes = 100});
  EXPECT_EQ(mover.copied, kGroupBytes);
  EXPECT_EQ(feed.Await(5), nullptr) << "it has no such group";
  mover.WaitFor(feed.End());
}

TEST(WeightFeedTest, AStopRequestFindsAWindowAtMost) {
  for (const int at : {1, 3, 4, 5, 23, 60}) {
    SCOPED_TRACE(at);
    LateMover mover;
    std::stop_source stop;
    std::atomic<int> pieces = 0;
    mover.on_copy = [&] {
      if (++pieces == at) stop.request_stop();
    };
    const Memories memories;
    WeightFeed feed(mover, memories.copies, mover.MarkCompute(), stop.get_token(), kLimits);
    const absl::Status status = StatusOfAwait(feed, kGroups - 1);
    EXPECT_EQ(status.code(), absl::StatusCode::kCancelled) << status;
    EXPECT_EQ(pieces, at) << "no piece is queued after the request";
    EXPECT_LE(mover.most_outstanding, kLimits.window_bytes);
    EXPECT_THROW(feed.Check(), StatusException);
    mover.WaitFor(feed.End());
  }
}

TEST(WeightFeedTest, WhatTheDeviceThrowsComesOutOfAwait) {
  LateMover mover;
  std::atomic<int> left = 8;
  mover.on_copy = [&] { TORCH_CHECK(--left > 0, "the device is lost"); };
  const Memories memories;
  WeightFeed feed(mover, memories.copies, mover.MarkCompute(), {}, kLimits);
  EXPECT_THROW(feed.Await(kGroups - 1), c10::Error);
  EXPECT_THROW(feed.Check(), c10::Error);
  mover.WaitFor(feed.End());
}

TEST(WeightFeedTest, OnAHostAllIsDoneWhenItIsQueued) {
  const auto mover = MakeWeightMover(at::kCPU);
  const Memories memories;
  WeightFeed feed(*mover, memories.copies, nullptr, {}, kLimits);
  for (const WeightFeed::Copy& copy : memories.copies) {
    EXPECT_TRUE(at::equal(copy.host, copy.device)) << copy.group;
  }
}

// Weights as a component has them: group g holds a vector of g.
struct Component {
  explicit Component(ComponentWeights::Home home) {
    auto owned = std::make_unique<LateMover>();
    mover = owned.get();
    weights = std::make_unique<ComponentWeights>(std::move(owned), home, nullptr, kLimits);
    for (size_t g = 0; g < kGroups; ++g) {
      if (g > 0) weights->BeginGroup();
      vectors.push_back(at::zeros({300}, at::kFloat).add_(static_cast<double>(g)));
      weights->Add(vectors.back());
    }
    weights->FinishBuilding();
  }

  void ExpectWhole(double first = 0) {
    for (size_t g = 0; g < kGroups; ++g) {
      weights->Use(g, g);
      mover->ComputeWith(vectors[g]);
      EXPECT_EQ(vectors[g].min().item<double>(), first + static_cast<double>(g));
      EXPECT_EQ(vectors[g].max().item<double>(), first + static_cast<double>(g));
    }
  }

  // Asks for a stop with the n-th piece, or the n-th tensor on its way to the host, from here on.
  std::stop_token StopAt(int n) {
    stop = {};
    seen = 0;
    mover->on_copy = mover->on_copy_to_host = [this, n] {
      if (++seen == n) stop.request_stop();
    };
    return stop.get_token();
  }

  absl::Status Run(const std::function<void()>& work) {
    return CatchTorchErrors("moving", [&] {
      work();
      return absl::OkStatus();
    });
  }

  LateMover* mover = nullptr;
  std::stop_source stop;
  std::atomic<int> seen = 0;
  std::unique_ptr<ComponentWeights> weights;
  std::vector<at::Tensor> vectors;
};

using Home = ComponentWeights::Home;

TEST(StoppedWeightsTest, BringUpQueuesNoMoreAndTheNextJobHasAll) {
  for (const int at : {2, 30}) {
    for (const bool parked_between : {false, true}) {
      SCOPED_TRACE(at);
      Component component(Home::kHost);
      const std::stop_token stop = component.StopAt(at);
      const absl::Status status = component.Run([&] {
        component.weights->BringUp(stop);
        component.ExpectWhole();
      });
      EXPECT_EQ(status.code(), absl::StatusCode::kCancelled) << status;
      EXPECT_EQ(component.seen, at);
      EXPECT_LE(component.mover->most_outstanding, kLimits.window_bytes);
      if (parked_between) component.weights->Park();
      component.weights->BringUp();
      component.ExpectWhole();
    }
  }
}

// Adds 100 to every group.
class Hundred final : public WeightPatch {
 public:
  explicit Hundred(Component& component) : component_(component) {}
  bool Touches(size_t) const override { return true; }
  void Apply(size_t group, WeightMover&) const override {
    component_.mover->ComputeWith(component_.vectors[group]);
    component_.vectors[group].add_(100);
  }

 private:
  Component& component_;
};

TEST(StoppedWeightsTest, RestoringTheBaseQueuesNoMoreAndTheNextJobHasIt) {
  for (const int at : {2, 30}) {
    SCOPED_TRACE(at);
    Component component(Home::kDevice);
    component.weights->KeepHostCopy();
    component.weights->SetPatch(std::make_shared<Hundred>(component));
    component.ExpectWhole(100);
    const std::stop_token stop = component.StopAt(at);
    const absl::Status status = component.Run([&] {
      EXPECT_TRUE(component.weights->SetPatch(nullptr, stop));
      return component.ExpectWhole();
    });
    EXPECT_EQ(status.code(), absl::StatusCode::kCancelled) << status;
    EXPECT_EQ(component.seen, at);
    EXPECT_TRUE(component.weights->SetPatch(nullptr)) << "some groups are not the base's yet";
    component.ExpectWhole();
  }
}

TEST(StoppedWeightsTest, FinishPatchSaysThatItWasStopped) {
  Component component(Home::kDevice);
  component.weights->KeepHostCopy();
  component.weights->SetPatch(std::make_shared<Hundred>(component));
  component.ExpectWhole(100);
  const std::stop_token stop = component.StopAt(30);
  component.weights->SetPatch(nullptr, stop);
  EXPECT_EQ(component.weights->FinishPatch().code(), absl::StatusCode::kCancelled);
}

// Fills the vectors as they were made, as far as it is not stopped, and asks for a stop with the
// group number `stop_at`.
class StoppingReader final : public WeightReader {
 public:
  StoppingReader(std::vector<at::Tensor> vectors, std::stop_source source, int stop_at)
      : vectors_(std::move(vectors)), source_(std::move(source)), left_(stop_at) {}
  absl::Status Read(std::span<const size_t> groups, WeightMover&,
                    const std::stop_token& stop) const override {
    for (const size_t group : groups) {
      if (--left_ == 0) source_.request_stop();
      if (stop.stop_requested()) return absl::CancelledError("stopped");
      vectors_[group].fill_(static_cast<double>(group));
      ++filled;
    }
    return absl::OkStatus();
  }

  mutable int filled = 0;

 private:
  const std::vector<at::Tensor> vectors_;
  mutable std::stop_source source_;
  mutable int left_;
};

TEST(StoppedWeightsTest, RestoringTheBaseByReadingEnds) {
  Component component(Home::kDevice);
  const std::stop_token stop = component.stop.get_token();
  component.weights->SetReader(
      std::make_unique<StoppingReader>(component.vectors, component.stop, 4));
  component.weights->SetPatch(std::make_shared<Hundred>(component));
  component.ExpectWhole(100);
  const absl::Status status = component.Run([&] { component.weights->SetPatch(nullptr, stop); });
  EXPECT_EQ(status.code(), absl::StatusCode::kCancelled) << status;
  EXPECT_TRUE(component.weights->SetPatch(nullptr)) << "some groups are not the base's yet";
  component.ExpectWhole();
}

TEST(StoppedWeightsTest, TheWayFromDiskToTheHostEnds) {
  Component component(Home::kDevice);
  const std::stop_token stop = component.stop.get_token();
  auto owned = std::make_unique<StoppingReader>(component.vectors, component.stop, 4);
  const StoppingReader& reader = *owned;
  component.weights->SetReader(std::move(owned));
  component.weights->Drop();
  const absl::Status status = component.Run([&] { component.weights->KeepHostCopy(stop); });
  EXPECT_EQ(status.code(), absl::StatusCode::kCancelled) << status;
  EXPECT_EQ(reader.filled, 3) << "the reader is told, too";
  EXPECT_EQ(component.mover->copies_to_host, 3);
  component.weights->KeepHostCopy();
  component.weights->BringUp();
  component.ExpectWhole();
}

TEST(StoppedWeightsTest, CopiesThatAreNotWantedAfterAllAreFreed) {
  Component component(Home::kDevice);
  const std::stop_token stop = component.StopAt(4);
  EXPECT_FALSE(component.Run([&] { component.weights->KeepHostCopy(stop); }).ok());
  EXPECT_GT(component.weights->HostBytes(), 0);
  component.weights->FreeHostCopy();
  EXPECT_EQ(component.weights->HostBytes(), 0);
  component.ExpectWhole();
  component.weights->Park();
  component.weights->FreeHostCopy();
  EXPECT_GT(component.weights->HostBytes(), 0) << "nothing else has the bits";
  component.weights->BringUp();
  component.ExpectWhole();
}

TEST(StoppedWeightsTest, CopiesToTheHostEndBetweenTensorsAndTheWeightsStay) {
  const auto moves = std::vector<std::function<void(Component&, const std::stop_token&)>>{
      [](Component& c, const std::stop_token& stop) { c.weights->Park(stop); },
      [](Component& c, const std::stop_token& stop) { c.weights->KeepHostCopy(stop); },
      [](Component& c, const std::stop_token& stop) { c.weights->Stream(stop); },
  };
  for (const auto& move : moves) {
    Component component(Home::kDevice);
    const std::stop_token stop = component.StopAt(4);
    const absl::Status status = component.Run([&] { move(component, stop); });
    EXPECT_EQ(status.code(), absl::StatusCode::kCancelled) << status;
    EXPECT_EQ(component.mover->copies_to_host, 4);
    EXPECT_TRUE(component.weights->IsUp());
    component.ExpectWhole();
    component.weights->Park();
    EXPECT_EQ(component.mover->copies_to_host, 10) << "what was copied stays";
    component.weights->BringUp();
    component.ExpectWhole();
  }
}

}  // namespace
}  // namespace wan
