#include "client/reports/run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/client/reports/synthetic_report.h"

namespace wan::client::reports {
namespace {

TEST(RunTest, StagesByName) {
  EXPECT_EQ(ParseStage("Step_12_Inference").kind, StageKind::kInference);
  EXPECT_EQ(ParseStage("Step_12_Inference").step, 12);
  EXPECT_EQ(ParseStage("Step_0_Loading").kind, StageKind::kLoading);
  EXPECT_EQ(ParseStage("I2V_Preprocess").kind, StageKind::kPreprocess);
  EXPECT_EQ(ParseStage("Step_x_Loading").kind, StageKind::kOther);
  EXPECT_EQ(ParseStage("Something_New").kind, StageKind::kOther);
}

// The seeds' 'total load' is the sum of the stages and of their total: twice what it is.
TEST(RunTest, LoadCountsEachMomentOnce) {
  wan::v1::JobReport report = GpuReport();
  EXPECT_DOUBLE_EQ(*TotalLoad(report), 20 * 80);
  report.mutable_stages(0)->clear_sm_activity_percent();
  EXPECT_NEAR(*TotalLoad(report), 4 * 3 * 99.5, 1e-9);
  EXPECT_EQ(TotalLoad(wan::v1::JobReport()), std::nullopt);
}

TEST(RunTest, TheBudgetAddsUpToTheTotal) {
  double sum = 0, denoising = 0, file = 0, between = 0;
  for (const TimeShare& share : TimeBudget(GpuReport())) {
    sum += share.seconds;
    if (share.kind == StageKind::kInference) denoising = share.seconds;
    if (share.kind == StageKind::kVideo) file = share.seconds;
    if (share.kind == StageKind::kOther) between = share.seconds;
  }
  EXPECT_NEAR(sum, 20, 1e-6);
  EXPECT_NEAR(denoising, 12, 1e-6);
  // From 18.5 s, when the last frame was decoded, to 19.5 s.
  EXPECT_NEAR(file, 1, 1e-6);
  EXPECT_NEAR(between, 2, 0.01);
}

TEST(RunTest, NamesComeFromTheBenchmarksLabels) {
  wan::v1::JobReport report = GpuReport();
  EXPECT_EQ(FullName(RunOf(report)), "jobs/a1");
  auto& labels = *report.mutable_request()->mutable_labels();
  labels[kCaseLabel] = "preview";
  labels[kVariantLabel] = "original";
  labels[kRunLabel] = "2";
  EXPECT_EQ(FullName(RunOf(report)), "preview (original, run 2)");
}

TEST(RunTest, WhatIsNotKnownIsNotGuessed) {
  const wan::v1::JobReport empty;
  EXPECT_EQ(PeakBytes(empty), std::nullopt);
  EXPECT_EQ(Resolution(empty), "");
  EXPECT_EQ(Offload(empty), "");
  EXPECT_EQ(MeanSmActivity(empty), std::nullopt);
  EXPECT_EQ(TotalSeconds(empty), 0);
  EXPECT_EQ(Offload(GpuReport()), "False");
}

}  // namespace
}  // namespace wan::client::reports
