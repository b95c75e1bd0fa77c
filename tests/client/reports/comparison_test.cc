#include "client/reports/comparison.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/client/reports/synthetic_report.h"

namespace wan::client::reports {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

MeasuredRun RunWith(wan::v1::JobReport report, const std::string& variant = "") {
  return {"case", variant, 1, std::move(report), std::nullopt};
}

std::vector<std::string> Texts(const std::vector<Difference>& differences) {
  std::vector<std::string> texts;
  for (const Difference& one : differences) {
    texts.push_back(TextBefore(one) + " -> " + TextAfter(one));
  }
  return texts;
}

TEST(ComparisonTest, SettingsThatDiffer) {
  wan::v1::JobReport other = GpuReport();
  other.mutable_plan()->set_batched_guidance(true);
  other.mutable_plan()->mutable_components(0)->set_residency("cpu");
  EXPECT_THAT(Texts(DifferencesOf(RunWith(GpuReport()), RunWith(other))),
              ElementsAre("batched_guidance no -> batched_guidance yes",
                          "text_encoder=resident -> text_encoder=cpu"));
  EXPECT_THAT(DifferencesOf(RunWith(other), RunWith(other)), IsEmpty());
}

TEST(ComparisonTest, AReportWithoutAQualityIsExact) {
  wan::v1::JobReport exact = GpuReport(), fast = GpuReport();
  exact.mutable_request()->set_quality(wan::v1::QUALITY_EXACT);
  fast.mutable_request()->set_quality(wan::v1::QUALITY_FAST);
  // It follows from the memory that 8 bits leave free.
  fast.mutable_plan()->set_batched_guidance(true);
  EXPECT_THAT(DifferencesOf(RunWith(GpuReport()), RunWith(exact)), IsEmpty());
  EXPECT_THAT(Texts(CausesOf(DifferencesOf(RunWith(exact), RunWith(fast)))),
              ElementsAre("quality exact -> quality fast"));
}

TEST(ComparisonTest, ExpertsOfOneScaleHaveOne) {
  wan::v1::JobReport one = GpuReport(), both = GpuReport(), two = GpuReport();
  one.mutable_request()->add_guidance_scale(1);
  for (const double scale : {1, 1}) both.mutable_request()->add_guidance_scale(scale);
  for (const double scale : {3, 4}) two.mutable_request()->add_guidance_scale(scale);
  EXPECT_THAT(DifferencesOf(RunWith(one), RunWith(both)), IsEmpty());
  EXPECT_THAT(Texts(DifferencesOf(RunWith(one), RunWith(two))),
              ElementsAre("guidance_scale 1 -> guidance_scale 3,4"));
}

TEST(ComparisonTest, WhatNobodyKnowsIsNoDifference) {
  wan::v1::JobReport warm = GpuReport();
  (*warm.mutable_request()->mutable_labels())[kWarmLabel] = "yes";
  EXPECT_THAT(DifferencesOf(RunWith(GpuReport()), RunWith(warm)), IsEmpty());
  wan::v1::JobReport cold = GpuReport();
  (*cold.mutable_request()->mutable_labels())[kWarmLabel] = "no";
  EXPECT_THAT(Texts(DifferencesOf(RunWith(cold), RunWith(warm))),
              ElementsAre("warm_up no -> warm_up yes"));
}

TEST(ComparisonTest, AVariantsNameMayStateAServersSetting) {
  const MeasuredRun own = RunWith(GpuReport());
  const MeasuredRun cold = RunWith(GpuReport(), "warm_up: false");
  const MeasuredRun preset = RunWith(GpuReport(), "h264_preset: ultrafast");
  EXPECT_THAT(Texts(DifferencesOf(cold, own)), ElementsAre("warm_up no -> warm_up yes"));
  EXPECT_THAT(Texts(DifferencesOf(own, preset)),
              ElementsAre("h264_preset another -> h264_preset ultrafast"));
  EXPECT_EQ(DifferencesOf(cold, preset).size(), 2u);
  EXPECT_THAT(DifferencesOf(own, RunWith(GpuReport(), "dtype: bf16")), IsEmpty())
      << "reports have that one";
}

TEST(ComparisonTest, ConsequencesAreNoCauses) {
  const std::vector<Difference> streamed = {
      {"record_forwards", "yes", "no"}, {"residency_policies transformer", "resident", "stream"}};
  EXPECT_THAT(Texts(CausesOf(streamed)), ElementsAre("transformer=resident -> transformer=stream"));
  const std::vector<Difference> both = {{"batched_guidance", "no", "yes"},
                                        {"vae_precision", "fp32", "fp16"}};
  EXPECT_EQ(CausesOf(both).size(), 2u) << "neither of the two decides the other";
}

TEST(ComparisonTest, TheMedianOfEachVariant) {
  std::vector<MeasuredRun> runs;
  for (const double seconds : {9, 5, 7}) {
    runs.push_back(RunWith(GpuReport()));
    runs.back().report.mutable_stages(0)->set_seconds(seconds);
  }
  runs.push_back(RunWith(GpuReport(), "other"));
  runs.push_back(RunWith(GpuReport()));
  runs.back().name = "another case";
  const std::vector<const MeasuredRun*> medians = MedianRuns(runs, "case");
  ASSERT_EQ(medians.size(), 2u);
  EXPECT_EQ(TotalSeconds(medians[0]->report), 7);
  EXPECT_EQ(medians[1]->variant, "other");
}

TEST(ComparisonTest, ResultsOfTwoVariants) {
  const auto variant = [](const std::string& name, std::optional<ResultDifference> difference) {
    MeasuredRun run = RunWith(GpuReport(), name);
    run.difference = difference;
    return run;
  };
  const std::vector<MeasuredRun> runs = {RunWith(GpuReport()),
                                         variant("same", ResultDifference{true, 0.0, true}),
                                         variant("other", ResultDifference{false, 0.25, false}),
                                         variant("third", ResultDifference{false, 0.5, false}),
                                         variant("unknown", std::nullopt),
                                         variant("fp32", ResultDifference{true, 0.0, false}),
                                         variant("old", ResultDifference{true, 0.0}),
                                         variant("near", ResultDifference{true, 0.0, false, 52.14}),
                                         variant("far", ResultDifference{true, 0.0, false, 20})};
  EXPECT_EQ(ResultText(runs[0], runs[1], runs), "latents: same bits; frames: same bits");
  EXPECT_EQ(ResultText(runs[2], runs[0], runs),
            "latents differ by 0.25 (relative); frames: other bits");
  EXPECT_EQ(ResultText(runs[1], runs[2], runs),
            "latents differ by 0.25 (relative); frames: other bits");
  EXPECT_EQ(ResultText(runs[2], runs[3], runs),
            "latents: not compared with each other; frames: not compared");
  EXPECT_EQ(ResultText(runs[0], runs[4], runs), "not compared");
  // Two precisions of the autoencoder.
  EXPECT_EQ(ResultText(runs[0], runs[5], runs), "latents: same bits; frames: other bits");
  EXPECT_EQ(ResultText(runs[7], runs[0], runs), "latents: same bits; frames: PSNR 52.1 dB");
  EXPECT_EQ(ResultText(runs[1], runs[7], runs), "latents: same bits; frames: PSNR 52.1 dB");
  EXPECT_EQ(ResultText(runs[7], runs[8], runs), "latents: same bits; frames: not compared");
  // What an older wanctl wrote.
  EXPECT_EQ(ResultText(runs[0], runs[6], runs), "latents: same bits; frames: not compared");
}

}  // namespace
}  // namespace wan::client::reports
