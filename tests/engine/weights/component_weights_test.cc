// Weights that move, on the CPU: the same tensors whatever happens to the memory behind them, and
// no use before arrival.
#include "engine/weights/component_weights.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <c10/util/Exception.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "tests/engine/weights/late_mover.h"

namespace wan {
namespace {

constexpr size_t kGroups = 4;

// Group g holds a matrix of 100 g and what follows, and a vector of g.
struct Weights {
  explicit Weights(ComponentWeights::Home home, std::unique_ptr<WeightMover> mover = nullptr) {
    if (mover == nullptr) mover = std::make_unique<LateMover>();
    late = dynamic_cast<LateMover*>(mover.get());
    component = std::make_unique<ComponentWeights>(std::move(mover), home);
    for (size_t g = 0; g < kGroups; ++g) {
      if (g > 0) component->BeginGroup();
      const auto rows = static_cast<int64_t>(3 + g);
      matrices.push_back(Matrix(g).clone().view({rows, 5}));
      vectors.push_back(at::full({7}, static_cast<double>(g), at::kFloat));
      component->Add(matrices.back());
      component->Add(vectors.back());
    }
    component->FinishBuilding();
  }

  static at::Tensor Matrix(size_t g) {
    const auto rows = static_cast<int64_t>(3 + g);
    return at::arange(100.0 * static_cast<double>(g),
                      100.0 * static_cast<double>(g) + static_cast<double>(5 * rows), at::kFloat);
  }

  // Uses the group and looks at it.
  void ExpectUsable(size_t g, size_t next) {
    component->Use(g, next);
    EXPECT_TRUE(at::equal(matrices[g].flatten(), Matrix(g))) << "group " << g;
    EXPECT_EQ(vectors[g].sum().item<double>(), 7.0 * static_cast<double>(g));
    EXPECT_EQ(vectors[0].sum().item<double>(), 0.0) << "the first group is there all the time";
    if (late == nullptr) return;
    for (const size_t read : {g, size_t{0}}) {
      late->ComputeWith(matrices[read]);
      late->ComputeWith(vectors[read]);
    }
  }

  void ExpectAllUsable() {
    for (size_t g = 0; g < kGroups; ++g) ExpectUsable(g, (g + 1) % kGroups);
  }

  LateMover* late = nullptr;
  std::unique_ptr<ComponentWeights> component;
  std::vector<at::Tensor> matrices;
  std::vector<at::Tensor> vectors;
};

using Home = ComponentWeights::Home;

TEST(ComponentWeightsTest, StayWhereTheyWereLoaded) {
  Weights weights(Home::kDevice);
  EXPECT_TRUE(weights.component->IsUp());
  weights.ExpectAllUsable();
  EXPECT_EQ(weights.late->allocated, 0) << "nothing is copied that never moves";
  EXPECT_EQ(weights.late->copies_to_host, 0);
}

TEST(ComponentWeightsTest, SizesAreOfWholeGroups) {
  const Weights weights(Home::kDevice);
  const WeightSizes sizes = weights.component->Sizes();
  // A matrix and a vector of less than 512 bytes each in every group.
  EXPECT_EQ(sizes.base, 1024);
  EXPECT_EQ(sizes.largest_group, 1024);
  EXPECT_EQ(sizes.total, 4096);
  EXPECT_EQ(weights.component->DeviceBytes(), 4096);
}

TEST(ComponentWeightsTest, ComeBackFromHostMemory) {
  Weights weights(Home::kDevice);
  for (int round = 0; round < 3; ++round) {
    weights.component->Park();
    EXPECT_EQ(weights.component->DeviceBytes(), 0);
    EXPECT_EQ(weights.matrices[1].const_data_ptr(), nullptr) << "the memory is given back";
    weights.component->BringUp();
    EXPECT_TRUE(weights.component->IsUp());
    weights.ExpectAllUsable();
  }
  EXPECT_EQ(weights.late->copies_to_host, 8) << "eight tensors, the first time only";
  EXPECT_EQ(weights.late->copied, 3 * 4096);
}

TEST(ComponentWeightsTest, TheirDeviceMemoryCountsWithThatOfOthers) {
  const auto held = std::make_shared<HeldBytes>();
  {
    Weights weights(Home::kDevice);
    Weights others(Home::kHost);
    weights.component->CountIn(held);
    others.component->CountIn(held);
    EXPECT_EQ(held->TakePeak(), 4096u);
    others.component->Stream();
    weights.component->Park();
    EXPECT_EQ(held->TakePeak(), 4096u + 3 * 1024) << "the most at a time";
    EXPECT_EQ(held->TakePeak(), 3 * 1024u);
    others.component->Park();
    weights.component->BringUp();
  }
  EXPECT_EQ(held->TakePeak(), 4096u);
  EXPECT_EQ(held->TakePeak(), 0u) << "they are gone";
}

TEST(ComponentWeightsTest, LoadedForHostMemoryNeverHaveTwoGroupsOnTheDevice) {
  Weights weights(Home::kHost);
  EXPECT_FALSE(weights.component->IsUp());
  EXPECT_EQ(weights.component->DeviceBytes(), 0);
  for (const at::Tensor& matrix : weights.matrices) EXPECT_EQ(matrix.const_data_ptr(), nullptr);
  EXPECT_THROW(weights.component->Use(0, 0), c10::Error) << "parked";
  weights.component->BringUp();
  weights.ExpectAllUsable();
}

TEST(ComponentWeightsTest, StreamOneGroupAfterTheOther) {
  Weights weights(Home::kHost);
  weights.component->Stream();
  EXPECT_EQ(weights.component->DeviceBytes(), 3 * 1024) << "the first group and two slots";
  EXPECT_THROW(weights.component->UseAll(), c10::Error);
  for (int round = 0; round < 3; ++round) {
    for (size_t g = 1; g < kGroups; ++g) weights.ExpectUsable(g, g + 1 < kGroups ? g + 1 : 1);
  }
  // The first group, and each of nine uses fetched once: the last one's next, too.
  EXPECT_EQ(weights.late->copied, 1024 * (1 + 9 + 1));
  weights.component->Park();
  weights.component->BringUp();
  weights.ExpectAllUsable();
}

TEST(ComponentWeightsTest, StreamInAnyOrder) {
  Weights weights(Home::kHost);
  weights.component->Stream();
  // What was announced is not always what is used.
  for (const auto& [group, next] : std::vector<std::pair<size_t, size_t>>{
           {3, 1}, {2, 3}, {2, 2}, {1, 0}, {0, 2}, {2, 1}, {3, 3}, {1, 2}}) {
    weights.ExpectUsable(group, next);
  }
}

// Copies that happen at once show the other mistake: a group overwritten while it is in use.
TEST(ComponentWeightsTest, StreamingDoesNotTouchTheGroupInUse) {
  Weights weights(Home::kHost, MakeWeightMover(at::kCPU));
  weights.component->Stream();
  for (int round = 0; round < 2; ++round) {
    for (size_t g = 1; g < kGroups; ++g) weights.ExpectUsable(g, g + 1 < kGroups ? g + 1 : 1);
  }
}

TEST(ComponentWeightsTest, TheirEndWaitsForWhatNobodyUsed) {
  for (const bool streaming : {false, true}) {
    const Weights weights(Home::kHost);
    if (streaming) {
      weights.component->Stream();
    } else {
      weights.component->BringUp();
    }
    EXPECT_GT(weights.late->copied, 0);
    // The mover looks at its queue when it ends.
  }
}

TEST(ComponentWeightsTest, WithoutRoomTheyAreParkedAndComeUpLater) {
  for (int good = 0; good < 4; ++good) {
    Weights weights(Home::kHost);
    weights.late->fail_after = good;
    EXPECT_THROW(weights.component->BringUp(), c10::OutOfMemoryError);
    EXPECT_EQ(weights.component->DeviceBytes(), 0);
    if (good < 3) {
      weights.late->fail_after = good;
      EXPECT_THROW(weights.component->Stream(), c10::OutOfMemoryError);
    }
    EXPECT_THROW(weights.component->Use(1, 2), c10::Error);
    weights.late->fail_after = -1;
    weights.component->BringUp();
    weights.ExpectAllUsable();
  }
}

}  // namespace
}  // namespace wan
