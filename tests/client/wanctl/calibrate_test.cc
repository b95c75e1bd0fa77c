// wanctl calibrate against a server whose answers are written down.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "client/wanctl/step_ratios.h"
#include "tests/client/wanctl/wanctl_fixture.h"

namespace wan::client {
namespace {

using fakes::Queued;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Json = nlohmann::json;

// Adds a step with the ratios of its two forwards; 0: none.
void AddStep(wan::v1::JobReport& report, const std::string& expert, double conditional,
             double unconditional) {
  wan::v1::StageReport& loading = *report.add_stages();
  loading.set_stage("Step_Loading");
  loading.set_expert(expert);
  wan::v1::StageReport& stage = *report.add_stages();
  stage.set_stage("Step_Inference");
  stage.set_expert(expert);
  stage.add_parts()->set_name("text_projection");
  const auto add = [&](const char* name, double ratio) {
    wan::v1::StagePart& part = *stage.add_parts();
    part.set_name(name);
    if (ratio > 0) part.set_change_ratio(ratio);
  };
  add("forward_conditional", conditional);
  if (unconditional >= 0) add("forward_unconditional", unconditional);
  stage.add_parts()->set_name("solver");
}

class CalibrateTest : public WanctlTest {
 protected:
  CalibrateTest() {
    wan::v1::GenerationRequest& request = *report_.mutable_request();
    request.set_steps(5);
    request.set_shift(12);
    request.set_solver(wan::v1::SOLVER_UNIPC);
    request.add_guidance_scale(3);
    request.add_guidance_scale(4);
    AddStep(report_, "high", 0, 0);
    AddStep(report_, "high", 0.9, 0.80000049);
    AddStep(report_, "low", 0, 0);
    AddStep(report_, "low", 0.7, 0.6);
    AddStep(report_, "low", 0.5, 0.4);
    model_.set_name("models/t2v");
    model_.set_family("t2v-a14b");
    model_.set_path("/models/T2V");
  }

  int Calibrate(std::vector<std::string> more = {}) {
    server_.scripts.get_report = [this](const auto&, wan::v1::JobReport* answer) {
      *answer = report_;
      return grpc::Status::OK;
    };
    server_.scripts.get_model = [this](const auto&, wan::v1::Model* answer) {
      *answer = model_;
      return grpc::Status::OK;
    };
    Script({Queued(1), CompletedWith(2, {})});
    more.insert(more.begin(), {"calibrate", "t2v", "--output", Path()});
    return Run(more);
  }

  std::string Path() const { return (folder_ / "step_ratios.json").string(); }
  Json File() const {
    std::ifstream file(Path());
    return Json::parse(file);
  }

  wan::v1::JobReport report_;
  wan::v1::Model model_;
};

TEST_F(CalibrateTest, WritesTheRatiosOfItsJob) {
  ASSERT_EQ(Calibrate({"--steps", "5", "--size", "832x480"}), 0) << err_;
  EXPECT_EQ(out_, Path() + "\n");
  EXPECT_THAT(err_, HasSubstr("wanctl: put it on the server as /models/T2V/step_ratios.json and "
                              "load the model again"));
  EXPECT_EQ(File(), Json::parse(R"({"version": 1, "model": "t2v-a14b", "solver": "unipc",
      "steps": 5, "shift": 12, "guidance_scale": [3, 4],
      "experts": {"high": {"conditional": [0.9], "unconditional": [0.8]},
                  "low": {"conditional": [0.7, 0.5], "unconditional": [0.6, 0.4]}}})"));
  const wan::v1::GenerationRequest sent = generate_requests_.All().at(0).request();
  EXPECT_TRUE(sent.calibrate());
  EXPECT_EQ(sent.quality(), wan::v1::QUALITY_EXACT);
  EXPECT_EQ(sent.model(), "t2v");
  EXPECT_EQ(sent.steps(), 5);
  EXPECT_EQ(sent.width(), 832);
  EXPECT_FALSE(sent.prompt().empty());
  EXPECT_THAT(sent.outputs(), ::testing::ElementsAre(wan::v1::OUTPUT_KIND_LATENTS));
}

TEST_F(CalibrateTest, WithoutGuidanceThereIsOneList) {
  report_.clear_stages();
  AddStep(report_, "only", 0, -1);
  AddStep(report_, "only", 0.9, -1);
  ASSERT_EQ(Calibrate(), 0) << err_;
  EXPECT_EQ(File()["experts"], Json::parse(R"({"only": {"conditional": [0.9]}})"));
}

TEST_F(CalibrateTest, AStepThatWasRepeatedAfterAFailureHasNoRatio) {
  report_.clear_stages();
  AddStep(report_, "only", 0, 0);
  AddStep(report_, "only", 0.9, 0.8);
  report_.mutable_stages(3)->set_error("no room");
  AddStep(report_, "only", 0, 0);
  EXPECT_EQ(Calibrate(), 4) << "the repeated step follows no other";
  EXPECT_THAT(err_, HasSubstr("jobs/a1 has not measured every step"));
}

TEST_F(CalibrateTest, AJobWithoutRatiosWritesNoFile) {
  for (wan::v1::StageReport& stage : *report_.mutable_stages()) {
    for (wan::v1::StagePart& part : *stage.mutable_parts()) part.clear_change_ratio();
  }
  EXPECT_EQ(Calibrate(), 4);
  EXPECT_THAT(out_, IsEmpty());
  EXPECT_FALSE(std::ifstream(Path()).good());
}

TEST_F(CalibrateTest, AFileThatCannotBeWrittenIsRefusedBeforeTheJob) {
  EXPECT_EQ(Run({"calibrate", "t2v", "--output", (folder_ / "none" / "r.json").string()}), 2);
  EXPECT_THAT(generate_requests_.All(), IsEmpty());
}

}  // namespace
}  // namespace wan::client
