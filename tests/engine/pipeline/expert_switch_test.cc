#include "engine/pipeline/expert_switch.h"

#include <ATen/ops/ones.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/fakes/fake_device_monitor.h"

namespace wan {
namespace {

using Policy = ResidencyPolicy;

// Two experts that are never computed with, each with a tensor of weights.
class ExpertSwitchTest : public testing::Test {
 protected:
  ExpertSwitchTest() {
    for (const ExpertRole role : {ExpertRole::kHighNoise, ExpertRole::kLowNoise}) {
      Expert& expert = model_.experts.emplace_back();
      expert.role = role;
      expert.component = TransformerComponent(role == ExpertRole::kLowNoise ? 1 : 0);
      expert.weights = std::make_shared<ComponentWeights>(MakeWeightMover(at::kCPU),
                                                          ComponentWeights::Home::kDevice);
      expert.weights->Add(at::ones({100}, at::kFloat));
      expert.weights->FinishBuilding();
    }
  }

  void Plan(const std::vector<std::string>& experts, Policy policy, bool prefetch) {
    plan_.steps.clear();
    for (const std::string& expert : experts) plan_.steps.push_back({0, *ParseExpert(expert), 1});
    plan_.residency = {{ModelComponent::kTransformer, policy},
                       {ModelComponent::kTransformer2, policy}};
    plan_.prefetch_experts = prefetch;
    for (Expert& expert : model_.experts) {
      if (policy != Policy::kResident) expert.weights->Park();
    }
  }

  // Which experts are on the device: "h", "l", "hl" or "".
  std::string Up() const {
    std::string up;
    for (const Expert& expert : model_.experts) {
      if (expert.weights->DeviceBytes() > 0) up += NameOf(expert.role).substr(0, 1);
    }
    return up;
  }

  // Where the weights are after each Take.
  std::vector<std::string> TakeAll() {
    std::vector<std::string> history;
    ExpertSwitch experts(plan_, model_, recorder_);
    for (int step = 0; step < static_cast<int>(plan_.steps.size()); ++step) {
      EXPECT_TRUE(experts.Take(step).ok());
      history.push_back(Up());
    }
    return history;
  }

  PipelineModel model_;
  GenerationPlan plan_;
  fakes::FakeDeviceMonitor monitor_;
  Recorder recorder_{SystemClock(), monitor_, {}};
};

using History = std::vector<std::string>;

TEST_F(ExpertSwitchTest, ResidentExpertsStay) {
  Plan({"high", "low"}, Policy::kResident, false);
  EXPECT_EQ(TakeAll(), (History{"hl", "hl"}));
  EXPECT_EQ(Up(), "hl");
}

TEST_F(ExpertSwitchTest, OneExpertAtATime) {
  Plan({"high", "high", "low", "low"}, Policy::kHost, false);
  EXPECT_EQ(TakeAll(), (History{"h", "h", "l", "l"}));
  EXPECT_EQ(Up(), "") << "the job's end gives the memory back";
}

TEST_F(ExpertSwitchTest, TheNextExpertComesWithTheLastStepOfTheOneBefore) {
  Plan({"high", "high", "low", "low"}, Policy::kHost, true);
  EXPECT_EQ(TakeAll(), (History{"h", "hl", "l", "l"}));
  EXPECT_EQ(Up(), "");
}

TEST_F(ExpertSwitchTest, ExpertsMayTakeTurns) {
  Plan({"low", "high", "low"}, Policy::kHost, true);
  EXPECT_EQ(TakeAll(), (History{"hl", "hl", "l"}));
  EXPECT_EQ(Up(), "");
}

TEST_F(ExpertSwitchTest, AStreamedExpertHoldsAPartOfItself) {
  Plan({"high", "low"}, Policy::kStream, false);
  EXPECT_EQ(TakeAll(), (History{"h", "l"}));
  EXPECT_EQ(Up(), "");
}

TEST_F(ExpertSwitchTest, AJobThatEndsEarlyGivesTheMemoryBack) {
  Plan({"high", "low"}, Policy::kHost, true);
  {
    ExpertSwitch experts(plan_, model_, recorder_);
    ASSERT_TRUE(experts.Take(0).ok());
    EXPECT_EQ(Up(), "hl");
  }
  EXPECT_EQ(Up(), "");
}

TEST_F(ExpertSwitchTest, NothingIsHeldBehindTheLastStep) {
  Plan({"high"}, Policy::kHost, false);
  ExpertSwitch experts(plan_, model_, recorder_);
  ASSERT_TRUE(experts.Take(0).ok());
  EXPECT_EQ(Up(), "h");
  experts.Finish();
  EXPECT_EQ(Up(), "");
}

TEST_F(ExpertSwitchTest, AnUnknownExpertIsAnError) {
  Plan({"medium"}, Policy::kResident, false);
  ExpertSwitch experts(plan_, model_, recorder_);
  EXPECT_EQ(experts.Take(0).status().code(), absl::StatusCode::kInternal);
}

}  // namespace
}  // namespace wan
