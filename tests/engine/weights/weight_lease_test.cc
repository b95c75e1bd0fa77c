#include "engine/weights/weight_lease.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <c10/util/Exception.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <stop_token>
#include <utility>

namespace wan {
namespace {

using Policy = ResidencyPolicy;

// A device that a kernel has lost: whatever is asked of it from then on throws, as CUDA does after
// an illegal access.
class LosableMover final : public WeightMover {
 public:
  bool DeviceIsHost() const override { return false; }
  explicit LosableMover(const bool& lost) : lost_(lost) {}

  at::Tensor AllocateHost(int64_t bytes) override { return Bytes(bytes); }
  at::Tensor AllocateDevice(int64_t bytes) override { return Bytes(bytes); }
  Mark MarkCompute() override { return nullptr; }
  Mark CopyToDevice(const at::Tensor& host, const at::Tensor& device, const Mark&) override {
    Check();
    device.copy_(host);
    return std::make_shared<int>(0);
  }
  void ComputeAfter(const Mark& copy) override {
    if (copy != nullptr) Check();
  }
  void WaitFor(const Mark&) noexcept override {}
  void CopyToHost(const at::Tensor& device, const at::Tensor& host) override {
    Check();
    host.copy_(device);
  }

 private:
  static at::Tensor Bytes(int64_t bytes) {
    return at::empty({bytes}, at::TensorOptions().dtype(at::kByte));
  }
  void Check() const { TORCH_CHECK(!lost_, "the device is lost"); }

  const bool& lost_;
};

class WeightLeaseTest : public testing::Test {
 protected:
  WeightLeaseTest()
      : weights_(std::make_shared<ComponentWeights>(std::make_unique<LosableMover>(lost_),
                                                    ComponentWeights::Home::kHost)) {
    weights_->Add(at::ones({100}, at::kFloat));
    weights_->BeginGroup();
    weights_->Add(at::ones({100}, at::kFloat));
    weights_->FinishBuilding();
  }

  bool IsOnDevice() const { return weights_->DeviceBytes() > 0; }

  bool lost_ = false;
  const std::shared_ptr<ComponentWeights> weights_;
};

TEST_F(WeightLeaseTest, ItsEndParksWhatThePolicyWantsInHostMemory) {
  for (const Policy policy : {Policy::kHost, Policy::kStream}) {
    {
      const WeightLease lease(weights_, policy);
      EXPECT_TRUE(IsOnDevice());
      EXPECT_EQ(weights_->IsUp(), policy == Policy::kHost);
    }
    EXPECT_FALSE(IsOnDevice());
  }
  { const WeightLease lease(weights_, Policy::kResident); }
  EXPECT_TRUE(IsOnDevice());
}

TEST(WeightLeaseOfDiskTest, ItsEndKeepsNoCopy) {
  class NothingReader final : public WeightReader {
    absl::Status Read(std::span<const size_t>, WeightMover&,
                      const std::stop_token&) const override {
      return absl::OkStatus();
    }
  };
  const auto weights = std::make_shared<ComponentWeights>(MakeWeightMover(at::kCPU),
                                                          ComponentWeights::Home::kDevice);
  weights->Add(at::ones({100}, at::kFloat));
  weights->FinishBuilding();
  weights->SetReader(std::make_unique<NothingReader>());
  for (int round = 0; round < 2; ++round) {
    const WeightLease lease(weights, Policy::kDisk);
    EXPECT_TRUE(weights->IsUp());
  }
  EXPECT_EQ(weights->DeviceBytes(), 0);
  EXPECT_EQ(weights->HostBytes(), 0);
}

TEST_F(WeightLeaseTest, OnlyTheLastOwnerParks) {
  std::optional<WeightLease> first(std::in_place, weights_, Policy::kHost);
  WeightLease second = std::move(*first);
  first.reset();
  EXPECT_TRUE(IsOnDevice());
  second = WeightLease(nullptr, Policy::kResident);
  EXPECT_FALSE(IsOnDevice());
}

TEST_F(WeightLeaseTest, WhatLostTheDeviceReachesTheCaller) {
  for (const Policy policy : {Policy::kHost, Policy::kStream}) {
    lost_ = false;
    const auto work = [&] {
      const WeightLease lease(weights_, policy);
      lost_ = true;
      throw std::runtime_error("an illegal access");
    };
    EXPECT_THROW(work(), std::runtime_error);
  }
}

TEST_F(WeightLeaseTest, APolicyThatIsNotPlannedIsToStay) {
  GenerationPlan plan;
  plan.residency = {{ModelComponent::kVae, Policy::kStream}};
  EXPECT_EQ(PolicyOf(plan, ModelComponent::kVae), Policy::kStream);
  EXPECT_EQ(PolicyOf(plan, ModelComponent::kTransformer), Policy::kResident);
}

}  // namespace
}  // namespace wan
