// Patches of weights that move, on the CPU: when groups are patched, and that the base comes back.
#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <c10/util/Exception.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <set>
#include <span>
#include <stop_token>
#include <utility>
#include <vector>

#include "engine/weights/component_weights.h"
#include "tests/engine/weights/late_mover.h"

namespace wan {
namespace {

using Home = ComponentWeights::Home;
constexpr size_t kGroups = 4;

// Adds a number to vectors, with factors of its own that the device reads meanwhile.
class AddingPatch final : public WeightPatch {
 public:
  AddingPatch(LateMover& device, double addend, std::map<size_t, at::Tensor> targets)
      : device_(device), addend_(addend), targets_(std::move(targets)) {}
  ~AddingPatch() override {
    if (watched) {
      EXPECT_GE(device_.computed(), last_use_) << "the device still reads the patch's factors";
    }
  }

  bool Touches(size_t group) const override { return targets_.contains(group); }
  void Apply(size_t group, WeightMover&) const override {
    ++applied;
    last_use_ = device_.ComputeWith(targets_.at(group));
    targets_.at(group).narrow(0, 0, 1).add_(addend_);
    TORCH_CHECK_WITH(OutOfMemoryError, fail_after-- != 0, "no room");
    targets_.at(group).narrow(0, 1, 4).add_(addend_);
  }

  mutable int applied = 0;
  mutable int fail_after = -1;
  // At its end the host must have waited for all that it queued.
  bool watched = false;

 private:
  LateMover& device_;
  mutable uint64_t last_use_ = 0;
  const double addend_;
  const std::map<size_t, at::Tensor> targets_;
};

// Group g holds a vector of g.
struct Weights {
  explicit Weights(Home home) {
    auto mover = std::make_unique<LateMover>();
    late = mover.get();
    component = std::make_unique<ComponentWeights>(std::move(mover), home);
    for (size_t g = 0; g < kGroups; ++g) {
      if (g > 0) component->BeginGroup();
      vectors.push_back(at::full({5}, static_cast<double>(g), at::kFloat));
      component->Add(vectors.back());
    }
    component->FinishBuilding();
  }

  std::shared_ptr<AddingPatch> Patch(double addend, const std::set<size_t>& groups) const {
    std::map<size_t, at::Tensor> targets;
    for (const size_t g : groups) targets[g] = vectors[g];
    return std::make_shared<AddingPatch>(*late, addend, std::move(targets));
  }

  // The groups hold these numbers when they are used.
  void ExpectValues(const std::vector<double>& values) {
    for (size_t g = 0; g < kGroups; ++g) {
      component->Use(g, (g + 1) % kGroups);
      late->ComputeWith(vectors[g]);
      EXPECT_EQ(vectors[g].min().item<double>(), values[g]) << "group " << g;
      EXPECT_EQ(vectors[g].max().item<double>(), values[g]) << "group " << g;
    }
  }

  LateMover* late = nullptr;
  std::unique_ptr<ComponentWeights> component;
  std::vector<at::Tensor> vectors;
};

TEST(ComponentPatchTest, GroupsArePatchedOnceWhenTheyAreUsed) {
  Weights weights(Home::kDevice);
  const auto patch = weights.Patch(10, {0, 2});
  EXPECT_TRUE(weights.component->SetPatch(patch));
  EXPECT_EQ(patch->applied, 0) << "before the first use";
  weights.ExpectValues({10, 1, 12, 3});
  weights.ExpectValues({10, 1, 12, 3});
  EXPECT_EQ(patch->applied, 2);
  EXPECT_EQ(weights.late->copies_to_host, 2) << "of the groups that change";
  EXPECT_FALSE(weights.component->SetPatch(patch));
  weights.ExpectValues({10, 1, 12, 3});
  EXPECT_EQ(patch->applied, 2);
}

// Fills the vectors as they were made.
class NumberReader final : public WeightReader {
 public:
  explicit NumberReader(std::vector<at::Tensor> vectors) : vectors_(std::move(vectors)) {}
  absl::Status Read(std::span<const size_t> groups, WeightMover&,
                    const std::stop_token&) const override {
    for (const size_t group : groups) vectors_[group].fill_(static_cast<double>(group));
    read += groups.size();
    return absl::OkStatus();
  }
  mutable size_t read = 0;

 private:
  const std::vector<at::Tensor> vectors_;
};

TEST(ComponentPatchTest, WeightsOnDiskArePatchedAfterTheReadingAndHaveNoCopy) {
  Weights weights(Home::kDevice);
  auto owned = std::make_unique<NumberReader>(weights.vectors);
  const NumberReader& reader = *owned;
  weights.component->SetReader(std::move(owned));
  const auto one = weights.Patch(10, {0, 2});
  const auto two = weights.Patch(100, {2, 3});
  weights.component->SetPatch(one);
  weights.ExpectValues({10, 1, 12, 3});
  weights.component->Drop();
  weights.component->BringUp();
  weights.ExpectValues({10, 1, 12, 3});
  EXPECT_EQ(reader.read, 4u);
  // Up already: what changes is read again.
  EXPECT_TRUE(weights.component->SetPatch(two));
  weights.ExpectValues({0, 1, 102, 103});
  EXPECT_EQ(reader.read, 6u);
  EXPECT_EQ(weights.component->HostBytes(), 0);
  // A copy that is made now holds the base.
  weights.component->Park();
  EXPECT_EQ(reader.read, 8u);
  weights.component->SetPatch(nullptr);
  weights.component->BringUp();
  weights.ExpectValues({0, 1, 2, 3});
}

TEST(ComponentPatchTest, EveryPatchBeginsWithTheBase) {
  Weights weights(Home::kDevice);
  const auto one = weights.Patch(10, {0, 2});
  const auto two = weights.Patch(100, {2, 3});
  weights.component->SetPatch(one);
  weights.ExpectValues({10, 1, 12, 3});
  EXPECT_TRUE(weights.component->SetPatch(two));
  weights.ExpectValues({0, 1, 102, 103});
  EXPECT_TRUE(weights.component->SetPatch(nullptr));
  weights.ExpectValues({0, 1, 2, 3});
  EXPECT_FALSE(weights.component->SetPatch(nullptr));
  EXPECT_EQ(weights.late->copies_to_host, 3) << "each changed group once";
}

TEST(ComponentPatchTest, APatchThatIsNeverUsedLeavesNoTrace) {
  Weights weights(Home::kDevice);
  const auto patch = weights.Patch(10, {0, 1, 2, 3});
  weights.component->SetPatch(patch);
  weights.component->Use(1, 2);
  weights.component->SetPatch(nullptr);
  weights.ExpectValues({0, 1, 2, 3});
  EXPECT_EQ(patch->applied, 2) << "the first group and the one that was used";
}

TEST(ComponentPatchTest, ParkedWeightsForgetTheirPatch) {
  for (const Home home : {Home::kDevice, Home::kHost}) {
    Weights weights(home);
    const auto patch = weights.Patch(10, {0, 1, 2});
    weights.component->BringUp();
    weights.component->SetPatch(patch);
    weights.ExpectValues({10, 11, 12, 3});
    weights.component->Park();
    EXPECT_FALSE(weights.component->SetPatch(nullptr)) << "nothing is on the device";
    weights.component->BringUp();
    weights.ExpectValues({0, 1, 2, 3});
    weights.component->Park();
    weights.component->SetPatch(patch);
    weights.component->BringUp();
    weights.ExpectValues({10, 11, 12, 3});
  }
}

TEST(ComponentPatchTest, StreamedGroupsArePatchedEachTimeTheyCome) {
  Weights weights(Home::kHost);
  const auto patch = weights.Patch(10, {0, 1, 3});
  weights.component->SetPatch(patch);
  weights.component->Stream();
  for (int round = 0; round < 3; ++round) weights.ExpectValues({10, 11, 2, 13});
  EXPECT_EQ(patch->applied, 1 + 2 * 3);
  EXPECT_TRUE(weights.component->SetPatch(nullptr)) << "the slots hold patched groups";
  for (int round = 0; round < 2; ++round) weights.ExpectValues({0, 1, 2, 3});
}

TEST(ComponentPatchTest, APatchThatFailsHalfWayIsUndone) {
  for (const bool again : {false, true}) {
    Weights weights(Home::kDevice);
    const auto patch = weights.Patch(10, {1, 2});
    patch->fail_after = 1;
    weights.component->SetPatch(patch);
    weights.component->Use(1, 2);
    EXPECT_THROW(weights.component->Use(2, 3), c10::OutOfMemoryError);
    patch->fail_after = -1;
    if (again) {
      weights.ExpectValues({0, 11, 12, 3});
    } else {
      weights.component->SetPatch(nullptr);
      weights.ExpectValues({0, 1, 2, 3});
    }
  }
}

TEST(ComponentPatchTest, FinishedPatchesWaitForNothing) {
  Weights weights(Home::kDevice);
  weights.component->KeepHostCopy();
  EXPECT_EQ(weights.late->copies_to_host, 4);
  const auto one = weights.Patch(10, {1, 2});
  weights.component->SetPatch(one);
  EXPECT_TRUE(weights.component->FinishPatch().ok());
  EXPECT_EQ(one->applied, 2);
  EXPECT_EQ(weights.vectors[2].sum().item<double>(), 5 * 12.0);
  weights.component->SetPatch(nullptr);
  EXPECT_TRUE(weights.component->FinishPatch().ok());
  EXPECT_EQ(weights.vectors[2].sum().item<double>(), 5 * 2.0);
  EXPECT_EQ(weights.late->copies_to_host, 4) << "there were copies";
}

TEST(ComponentPatchTest, AStopRequestEndsThePatchingWithinAGroup) {
  Weights weights(Home::kDevice);
  weights.component->KeepHostCopy();
  const auto one = weights.Patch(10, {1, 2, 3});
  weights.component->SetPatch(one);
  std::stop_source stop;
  stop.request_stop();
  EXPECT_EQ(weights.component->FinishPatch(stop.get_token()).code(), absl::StatusCode::kCancelled);
  EXPECT_LE(one->applied, 1);
  // What is left is patched when it is used.
  weights.ExpectValues({0, 11, 12, 13});
}

// A job that is cancelled leaves copies of the factors in the computing queue; when its model is
// unloaded nothing else waits for them.
TEST(ComponentPatchTest, APatchStaysUntilTheDeviceHasReadIt) {
  enum class End { kUnload, kOtherPatch, kParkAndUnload, kFailure };
  for (const End end : {End::kUnload, End::kOtherPatch, End::kParkAndUnload, End::kFailure}) {
    SCOPED_TRACE(static_cast<int>(end));
    Weights weights(Home::kDevice);
    std::shared_ptr<AddingPatch> patch = weights.Patch(10, {1, 2});
    patch->watched = true;
    if (end == End::kFailure) patch->fail_after = 0;
    const std::weak_ptr<AddingPatch> alive = patch;
    weights.component->SetPatch(std::move(patch));
    if (end == End::kFailure) {
      EXPECT_THROW(weights.component->Use(1, 2), c10::OutOfMemoryError);
    } else {
      weights.component->Use(1, 2);
    }
    weights.component->SetPatch(nullptr);
    if (end == End::kOtherPatch) {
      weights.component->SetPatch(weights.Patch(100, {1}));
      weights.component->Use(1, 2);
      EXPECT_TRUE(alive.expired()) << "nothing reads it any more";
    }
    if (end == End::kParkAndUnload) weights.component->Park();
    weights.component.reset();
    EXPECT_TRUE(alive.expired());
  }
}

TEST(ComponentPatchTest, NamesLeadToGroupAndView) {
  ComponentWeights weights(MakeWeightMover(at::kCPU), Home::kHost);
  const at::Tensor first = at::full({2, 3}, 1.0, at::kFloat);
  weights.Add(first);
  weights.Name("a", first.narrow(0, 1, 1));
  weights.BeginGroup();
  const at::Tensor second = at::full({2}, 2.0, at::kFloat);
  weights.Add(second);
  weights.Name("b", second);
  weights.FinishBuilding();
  weights.BringUp();
  weights.UseAll();
  EXPECT_FALSE(weights.Find("c").has_value());
  EXPECT_EQ(weights.Find("a")->group, 0U);
  EXPECT_EQ(weights.Find("b")->group, 1U);
  EXPECT_EQ(weights.Find("a")->tensor.sum().item<double>(), 3.0);
  weights.Find("a")->tensor.fill_(7);
  EXPECT_EQ(first.sum().item<double>(), 3 + 21.0) << "the same memory";
}

}  // namespace
}  // namespace wan
