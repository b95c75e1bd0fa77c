#include "client/reports/verdict.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/reports/render.h"
#include "client/reports/sections.h"
#include "tests/client/reports/synthetic_report.h"

namespace wan::client::reports {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

Measured Times(std::vector<double> seconds, Circumstances circumstances = {}) {
  return {std::move(seconds), circumstances};
}

constexpr char kNoise[] = "not told apart from noise: ";

TEST(VerdictTest, ADifferenceBeyondTheSpreadIsTold) {
  const Verdict faster = Judge(Times({20, 21, 22}), Times({10, 11, 11.5}));
  EXPECT_EQ(faster.saved, 10);
  EXPECT_NEAR(*faster.factor, 21.0 / 11, 1e-9);
  EXPECT_EQ(faster.text, "faster");
  const Verdict slower = Judge(Times({10, 11, 11.5}), Times({20, 21, 22}));
  EXPECT_EQ(slower.saved, -10);
  EXPECT_EQ(slower.text, "slower");
}

// One run has no spread: "Warm-up saved 12.25 s" of a machine that was busy in one of two runs.
TEST(VerdictTest, OneRunOnEachSideTellsNothing) {
  const Verdict verdict = Judge(Times({27.5}), Times({15.25}));
  EXPECT_EQ(verdict.saved, std::nullopt);
  EXPECT_EQ(verdict.factor, std::nullopt);
  EXPECT_EQ(verdict.text,
            "not told apart from noise: 1 and 1 measurements are too few to know their spread");
  EXPECT_THAT(Judge(Times({27.5}), Times({15, 15.5})).text, StartsWith(kNoise));
}

TEST(VerdictTest, WithinTheSpreadItIsNoise) {
  EXPECT_EQ(Judge(Times({10, 12, 19}), Times({9, 10.5, 11})).text,
            "not told apart from noise: the two sides overlap");
  EXPECT_EQ(Judge(Times({14, 14.5, 15}), Times({10, 12, 13})).text,
            "not told apart from noise: the difference of 2.50 s is not greater than their range "
            "of 3.00 s");
  EXPECT_THAT(Judge(Times({10, 10, 10}), Times({10, 10, 10})).text, StartsWith(kNoise));
}

// A cold start can be measured once only.
TEST(VerdictTest, ASideOfOneRunNeedsThreeTimesTheRange) {
  EXPECT_EQ(Judge(Times({12.9}), Times({10, 10.5, 11})).text,
            "not told apart from noise: the difference of 2.40 s is not greater than three times "
            "their range of 1.00 s");
  EXPECT_EQ(Judge(Times({13.75}), Times({10, 10.5, 11})).saved, 3.25);
}

TEST(VerdictTest, ADisturbanceOfTheSlowerSideIsNoise) {
  const Measured quick = Times({10, 10, 10}, {4, 1980, 0, 1});
  const auto slow = [](Circumstances circumstances) { return Times({20, 20, 20}, circumstances); };
  EXPECT_EQ(Judge(slow({31, 1980, 0, 1}), quick).text,
            "not told apart from noise: other processes used this share of the processors, in "
            "percent: 31 before and 4 after");
  EXPECT_EQ(Judge(quick, slow({31, 1980, 0, 1})).text,
            "not told apart from noise: other processes used this share of the processors, in "
            "percent: 4 before and 31 after");
  EXPECT_EQ(Judge(slow({4, 1410, 0, 1}), quick).text,
            "not told apart from noise: the SM clock was, in MHz: 1410 before and 1980 after");
  EXPECT_EQ(Judge(slow({4, 1980, 40, 1}), quick).text,
            "not told apart from noise: the driver held the clocks down in this share of the time, "
            "in percent: 40 before and 0 after");
  EXPECT_EQ(Judge(slow({4, 1980, 0, 2}), quick).text,
            "not told apart from noise: processes on the GPU: 2 before and 1 after");
  EXPECT_EQ(Judge(slow({8, 1950, 4, 1}), quick).saved, 10) << "small changes disturb nothing";
  EXPECT_EQ(Judge(slow({}), quick).saved, 10) << "neither does what was not sampled";
}

TEST(VerdictTest, WhatIsFasterThoughItWasDisturbedIsFaster) {
  EXPECT_EQ(
      Judge(Times({20, 20, 20}, {4, 1980, 0, 1}), Times({10, 10, 10}, {60, 1410, 40, 2})).text,
      "faster");
}

MeasuredRun Timed(const std::string& variant, double seconds, double others_cpu,
                  const std::string& asked = "3") {
  MeasuredRun run{"case", variant, 1, GpuReport(), std::nullopt};
  auto& total = *run.report.mutable_stages(0);
  total.set_seconds(seconds);
  total.set_cpu_percent(50 + others_cpu);
  total.set_process_cpu_percent(50);
  auto& labels = *run.report.mutable_request()->mutable_labels();
  labels[kRunsLabel] = asked;
  labels[kWarmLabel] = variant.empty() ? "yes" : "no";
  return run;
}

TEST(VerdictTest, RunsOfACaseAndVariantAreMeasuredTogether) {
  const std::vector<MeasuredRun> runs = {Timed("", 12, 3), Timed("cold", 30, 40), Timed("", 10, 1),
                                         Timed("", 11, 2)};
  const Measured measured = MeasuredRuns(runs[0], runs);
  EXPECT_THAT(measured.seconds, testing::ElementsAre(10, 11, 12));
  EXPECT_EQ(measured.median(), 11);
  EXPECT_EQ(measured.asked, 3);
  EXPECT_EQ(measured.circumstances.others_cpu_percent, 2);
  EXPECT_EQ(RunsText(measured), "3: 10.00 to 12.00 s");
  EXPECT_EQ(RunsText(MeasuredRuns(runs[1], runs)), "1 of 3");
  EXPECT_EQ(RunsText(Times({1})), "1");
}

// Every part of the report that compares says the same.
TEST(VerdictTest, NoPartOfAReportClaimsASavingOfABusyMachine) {
  const std::vector<MeasuredRun> runs = {Timed("", 15.25, 4), Timed("", 15.5, 4),
                                         Timed("", 15.75, 4), Timed("cold", 27.5, 47)};
  const std::string text =
      RenderMarkdown(Document{"",
                              "",
                              {},
                              {BenchmarkReport(runs, {}), PerformanceAnalysis(runs),
                               BottleneckAnalysis(runs, {}), OptionsReport(runs, {})}});
  EXPECT_THAT(text, HasSubstr("27.50 | 1 of 3 | 15.50 | 3: 15.25 to 15.75 s | not told apart from "
                              "noise: other processes used this share of the processors, in "
                              "percent: 47 before and 4 after |"));
  EXPECT_THAT(text, HasSubstr("| Warm-up | warm\\_up, warm\\_up\\_shapes | after a warm-up | not "
                              "told apart from noise |"));
  EXPECT_THAT(text, Not(HasSubstr("| faster |")));
  EXPECT_THAT(text, Not(HasSubstr("Saved (s)"))) << "no row has a value";
  EXPECT_THAT(text, HasSubstr("| 1 of 3 | 27.50 |")) << "in the summary as well";
}

}  // namespace
}  // namespace wan::client::reports
