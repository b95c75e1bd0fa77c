#include "client/reports/step_changes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_join.h"
#include "tests/client/reports/synthetic_report.h"

namespace wan::client::reports {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Ten steps of 1 s, then ten of 2 s.
wan::v1::JobReport Slower() {
  wan::v1::JobReport report;
  for (int i = 0; i < 20; ++i) {
    auto& step = AddStage(report, absl::StrCat("Step_", i, "_Inference"), 2.0 * i, i < 10 ? 1 : 2);
    step.set_expert("only");
    step.set_sm_activity_percent(100);
    step.set_sm_clock_mhz(1700);
    step.set_power_watts(690);
    step.set_gpu_processes(1);
    step.add_throttle_reasons("power cap");
  }
  return report;
}

std::string Explain(const wan::v1::JobReport& report) {
  const StepHistory history = StepHistoryOf(report);
  EXPECT_EQ(history.changes.size(), 1u);
  return history.changes.empty() ? "" : absl::StrJoin(history.changes[0].explanation, " ");
}

TEST(StepChangesTest, SaysWhatChangedAndWhatItCost) {
  const StepHistory history = StepHistoryOf(Slower());
  ASSERT_EQ(history.changes.size(), 1u);
  EXPECT_EQ(history.changes[0].step, 10);
  EXPECT_EQ(history.changes[0].last, 19);
  EXPECT_DOUBLE_EQ(history.changes[0].extra_seconds, 10);
  EXPECT_EQ(history.changes[0].explanation[0],
            "Steps 10 to 19 took 2.00 s each instead of 1.00 s (+100 %).");
}

// Ten steps of 1 s and ten of 2 s, of which every second one reuses blocks from step 4 on.
TEST(StepChangesTest, StepsThatReuseBlocksChangeNoLevel) {
  wan::v1::JobReport report = Slower();
  for (int i = 5; i < 20; i += 2) {
    report.mutable_plan()->add_reused_steps(i);
    report.mutable_stages(i)->set_seconds(0.1);
  }
  const StepHistory history = StepHistoryOf(report);
  EXPECT_EQ(history.seconds.size(), 20u);
  ASSERT_EQ(history.levels.levels.size(), 2u);
  EXPECT_EQ(history.levels.levels[0].first, 0);
  EXPECT_EQ(history.levels.levels[0].last, 8);
  EXPECT_THAT(history.levels.levels[0].exceptions, ::testing::ElementsAre(5, 7));
  EXPECT_EQ(history.levels.levels[0].seconds, 1);
  EXPECT_EQ(history.levels.levels[1].first, 10);
  EXPECT_EQ(history.levels.levels[1].last, 18);
  ASSERT_EQ(history.changes.size(), 1u);
  EXPECT_DOUBLE_EQ(history.changes[0].extra_seconds, 5) << "of the five that computed";
}

// A job may compute a step that its plan would reuse, and old reports have no parts.
TEST(StepChangesTest, TheStepsPartsSayWhetherItReused) {
  wan::v1::JobReport report = Slower();
  report.mutable_plan()->add_reused_steps(3);
  report.mutable_plan()->add_reused_steps(5);
  AddPart(*report.mutable_stages(3), "forward_conditional", 0, 1, 1e12);
  AddPart(*report.mutable_stages(7), "reuse", 0, 0.1, 1e9);
  EXPECT_THAT(StepHistoryOf(report).reused, ::testing::ElementsAre(5, 7));
}

TEST(StepsTextTest, ThreeInARowAreARange) {
  EXPECT_EQ(StepsText({}), "");
  EXPECT_EQ(StepsText({0, 1, 2, 5, 7, 8}), "0 to 2, 5, 7, 8");
  EXPECT_EQ(StepsText({3, 4, 5}, "S", "_Loading"), "S3_Loading to S5_Loading");
}

TEST(StepChangesTest, ClocksAndTheirReason) {
  wan::v1::JobReport report = Slower();
  for (int i = 10; i < 20; ++i) {
    report.mutable_stages(i)->set_sm_clock_mhz(850);
    report.mutable_stages(i)->add_throttle_reasons("temperature");
  }
  EXPECT_THAT(Explain(report), HasSubstr("The SM clock went from 1700 to 850 MHz (-50 %)."));
  EXPECT_THAT(Explain(report),
              HasSubstr("The driver held the clocks down from there on: temperature."));
}

TEST(StepChangesTest, AReasonThatHeldBeforeExplainsNothing) {
  EXPECT_THAT(Explain(Slower()), Not(HasSubstr("power cap")));
}

// Slower()'s twenty steps with other power in the last ten.
wan::v1::JobReport WithPower(double before, double after) {
  wan::v1::JobReport report = Slower();
  for (int i = 0; i < 20; ++i) report.mutable_stages(i)->set_power_watts(i < 10 ? before : after);
  return report;
}

void ClearReasons(wan::v1::JobReport& report) {
  for (auto& step : *report.mutable_stages()) step.clear_throttle_reasons();
}

TEST(StepChangesTest, PowerThatIsHeldDownIsTheReason) {
  EXPECT_THAT(Explain(WithPower(690, 345)),
              HasSubstr("The card drew 345 W instead of 690 W (-50 %), and the driver held it to "
                        "less: power cap."));
  EXPECT_THAT(Explain(WithPower(690, 345)), Not(HasSubstr("stayed as they were")));
}

TEST(StepChangesTest, LessPowerAtTheSameClocksIsWaiting) {
  wan::v1::JobReport report = WithPower(690, 345);
  ClearReasons(report);
  EXPECT_THAT(Explain(report), HasSubstr("(-50 %) at the same clocks: its SMs waited"));
  for (auto& step : *report.mutable_stages()) step.clear_sm_clock_mhz();
  EXPECT_THAT(Explain(report), HasSubstr("(-50 %): its SMs waited"));
}

TEST(StepChangesTest, MorePowerForSlowerStepsIsOtherWork) {
  EXPECT_THAT(Explain(WithPower(500, 690)), HasSubstr("something else computed on it as well"));
}

TEST(StepChangesTest, PowerFollowsFromClocks) {
  wan::v1::JobReport report = WithPower(690, 345);
  ClearReasons(report);
  for (int i = 10; i < 20; ++i) report.mutable_stages(i)->set_sm_clock_mhz(850);
  EXPECT_THAT(Explain(report), HasSubstr("(-50 %), which follows from that."));
}

TEST(StepChangesTest, PowerThatStaysExplainsNothing) {
  EXPECT_THAT(Explain(WithPower(690, 680)), Not(HasSubstr("The card drew")));
  wan::v1::JobReport report = WithPower(690, 680);
  for (auto& step : *report.mutable_stages()) step.clear_power_watts();
  EXPECT_THAT(Explain(report), HasSubstr("no samples of power, which would tell"));
}

// The same read backwards: ten steps of 2 s, then ten of 1 s.
TEST(StepChangesTest, PowerOfStepsThatBecameFaster) {
  const auto faster = [](double before, double after) {
    wan::v1::JobReport report = WithPower(before, after);
    ClearReasons(report);
    for (int i = 0; i < 20; ++i) report.mutable_stages(i)->set_seconds(i < 10 ? 2 : 1);
    return Explain(report);
  };
  EXPECT_THAT(faster(345, 690), HasSubstr("(+100 %) at the same clocks: its SMs no longer waited"));
  EXPECT_THAT(faster(690, 500), HasSubstr("something else that computed on it had ended"));
}

TEST(StepChangesTest, AnotherProcessOnTheCard) {
  wan::v1::JobReport report = Slower();
  for (int i = 0; i < 20; ++i) {
    auto& step = *report.mutable_stages(i);
    step.set_gpu_memory_reserved_peak_bytes(20 * kGiB);
    step.set_gpu_memory_used_bytes((i < 10 ? 21 : 33) * kGiB);
    if (i >= 10) step.set_gpu_processes(2);
  }
  EXPECT_THAT(Explain(report), HasSubstr("2 processes used the GPU instead of 1."));
  EXPECT_THAT(Explain(report), HasSubstr("Other users of the GPU held 12.0 GiB more."));
}

TEST(StepChangesTest, OtherProcessesOnTheProcessors) {
  wan::v1::JobReport report = Slower();
  for (int i = 0; i < 20; ++i) {
    report.mutable_stages(i)->set_cpu_percent(i < 10 ? 60 : 100);
    report.mutable_stages(i)->set_process_cpu_percent(i < 10 ? 55 : 50);
  }
  EXPECT_THAT(Explain(report),
              HasSubstr("Other processes used 50 % of the machine's processors instead of 5 %."));
}

TEST(StepChangesTest, TheOtherExpertIsNobodysFault) {
  wan::v1::JobReport report = Slower();
  for (int i = 0; i < 20; ++i) report.mutable_stages(i)->set_expert(i < 10 ? "high" : "low");
  const StepHistory history = StepHistoryOf(report);
  ASSERT_EQ(history.changes.size(), 1u);
  EXPECT_FALSE(history.changes[0].from_outside);
  EXPECT_EQ(history.changes[0].extra_seconds, 0);
  EXPECT_THAT(Explain(report), HasSubstr("The expert 'low' computes from there on."));
}

TEST(StepChangesTest, SaysWhenNothingExplainsIt) {
  EXPECT_THAT(Explain(Slower()), HasSubstr("SM activity was full before and after"));
  EXPECT_THAT(Explain(Slower()), HasSubstr("stayed as they were"));
  wan::v1::JobReport report = Slower();
  for (auto& step : *report.mutable_stages()) {
    step.clear_sm_clock_mhz();
    step.clear_gpu_processes();
  }
  EXPECT_THAT(Explain(report),
              HasSubstr("no samples of clocks and their limits and other processes on the GPU"));
  for (auto& step : *report.mutable_stages()) step.clear_power_watts();
  EXPECT_THAT(
      Explain(report),
      HasSubstr("no samples of clocks and their limits, power, and other processes on the GPU"));
}

TEST(StepChangesTest, OnACpuNothingIsSaidOfAGpu) {
  wan::v1::JobReport report = Slower();
  report.set_device("cpu");
  for (auto& step : *report.mutable_stages()) {
    step.clear_sm_clock_mhz();
    step.clear_power_watts();
    step.clear_gpu_processes();
    step.clear_sm_activity_percent();
  }
  EXPECT_THAT(Explain(report), HasSubstr("no samples of the processors' use"));
  for (auto& step : *report.mutable_stages()) {
    step.set_cpu_percent(100);
    step.set_process_cpu_percent(50);
  }
  EXPECT_THAT(Explain(report), HasSubstr("50 % of the machine's processors before and 50 % after"));
  EXPECT_THAT(Explain(report), testing::Not(HasSubstr("GPU")));
}

}  // namespace
}  // namespace wan::client::reports
