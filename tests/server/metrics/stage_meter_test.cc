#include "server/metrics/stage_meter.h"

#include <gtest/gtest.h>
#include <prometheus/text_serializer.h>

#include "absl/strings/str_cat.h"
#include "tests/fakes/fake_clock.h"
#include "tests/fakes/fake_device_monitor.h"
#include "tests/support/prometheus_text.h"

namespace wan::server {
namespace {

using support::PrometheusText;

class StageMeterTest : public ::testing::Test {
 protected:
  PrometheusText Scrape() const {
    auto parsed =
        PrometheusText::Parse(prometheus::TextSerializer().Serialize(registry_.Collect()));
    EXPECT_TRUE(parsed.ok()) << parsed.status();
    return parsed.ok() ? *std::move(parsed) : PrometheusText();
  }

  double Seconds(const char* stage) const {
    return Scrape()
        .Value("wan_execution_seconds_total",
               {{"model", "m"}, {"quality", "high"}, {"stage", stage}})
        .value_or(0);
  }

  // Of all stages.
  double Sum() const {
    double sum = 0;
    const PrometheusText text = Scrape();
    if (const auto* family = text.Find("wan_execution_seconds_total")) {
      for (const auto& sample : family->samples) sum += sample.value;
    }
    return sum;
  }

  void Pass(int seconds) { clock_.Advance(absl::Seconds(seconds)); }

  static std::shared_ptr<const StepFacts> Step(int step) {
    return std::make_shared<const StepFacts>(StepFacts{step, 5, 900, ExpertRole::kOnly});
  }

  fakes::FakeClock clock_;
  fakes::FakeDeviceMonitor monitor_;
  prometheus::Registry registry_;
  StageMeter meter_{registry_, clock_};
  std::unique_ptr<TelemetrySink> sink_ = meter_.NewSink({"m", "jobs/1", 1, {64, 32, 5}, "high"});
  Recorder recorder_{clock_, monitor_, {sink_.get()}};
};

// The wait in the queue is no part of the attempt, the encoder works beside the decoder, and LoRAs
// are merged within the loading: what was counted twice adds up to the whole now.
TEST_F(StageMeterTest, TheStagesAddUpToTheWhole) {
  recorder_.RecordPast(StageKind::kQueueWait, clock_.Now() - absl::Seconds(1000),
                       absl::Seconds(1000));
  Span total = recorder_.StartSpan(StageKind::kTotalExecution);
  Pass(1);
  Span loading = recorder_.StartSpan({StageKind::kStepLoading, 0}, Step(0));
  Pass(2);
  Span lora = recorder_.StartSpan(StageKind::kLoraMerging);
  Pass(4);
  lora.Finish().IgnoreError();
  loading.Finish().IgnoreError();
  Span decoding = recorder_.StartSpan(StageKind::kVaeDecoding);
  Pass(8);
  Span encoding = recorder_.StartSpan(StageKind::kVideoEncoding);
  Pass(16);
  decoding.Finish().IgnoreError();
  Pass(32);
  encoding.Finish().IgnoreError();
  Pass(64);
  total.Finish().IgnoreError();
  Pass(128);
  EXPECT_EQ(Seconds("Other"), 65);
  EXPECT_EQ(Seconds("Step_Loading"), 2);
  EXPECT_EQ(Seconds("LoRA_Merging"), 4);
  EXPECT_EQ(Seconds("VAE_Decoding"), 24);
  EXPECT_EQ(Seconds("Video_Encoding"), 32);
  EXPECT_EQ(Seconds("Queue_Wait"), 0);
  EXPECT_EQ(Sum(), 127);
  EXPECT_EQ(Scrape().Value("wan_stage_seconds_sum",
                           {{"model", "m"}, {"quality", "high"}, {"stage", "Total_Execution"}}),
            127);
  EXPECT_EQ(Scrape().Value("wan_attempt_seconds_total", {{"model", "m"}, {"outcome", "completed"}}),
            127);
}

TEST_F(StageMeterTest, TimeOfJobsThatWereCancelledOrFailedCounts) {
  const std::pair<absl::Status, const char*> ends[] = {
      {absl::CancelledError("no longer wanted"), "stopped"},
      {absl::InternalError("broken"), "failed"}};
  double sum = 0;
  for (const auto& [status, outcome] : ends) {
    Span total = recorder_.StartSpan(StageKind::kTotalExecution);
    Span step = recorder_.StartSpan({StageKind::kStepInference, 0}, Step(0));
    Pass(7);
    step.Finish(status).IgnoreError();
    total.Finish(status).IgnoreError();
    sum += 7;
    EXPECT_EQ(Seconds("Step_Inference"), sum);
    EXPECT_EQ(Scrape().Value("wan_attempt_seconds_total", {{"model", "m"}, {"outcome", outcome}}),
              7);
  }
  // A step that did not end well tells nothing of how long steps take.
  EXPECT_EQ(Scrape().Value(
                "wan_step_seconds_count",
                {{"model", "m"}, {"quality", "high"}, {"expert", "only"}, {"shape", "64x32x5"}}),
            std::nullopt);
}

TEST_F(StageMeterTest, TellsWhereTheRunningAttemptIs) {
  EXPECT_TRUE(meter_.Running().empty());
  {
    Span total = recorder_.StartSpan(StageKind::kTotalExecution);
    Pass(1);
    Span encoding = recorder_.StartSpan(StageKind::kT5Encoding);
    Pass(2);
    ASSERT_FALSE(meter_.Running().empty());
    EXPECT_EQ(meter_.Running().front().stage, "T5_Encoding");
    EXPECT_EQ(meter_.Running().front().quality, "high");
    EXPECT_EQ(meter_.Running().front().in_stage, absl::Seconds(2));
    // Before the first step: since the attempt began.
    EXPECT_EQ(meter_.Running().front().since_step, absl::Seconds(3));
    encoding.Finish().IgnoreError();
    // The attempt goes on behind a savepoint.
    for (const int step : {3, 4}) {
      Span span = recorder_.StartSpan({StageKind::kStepInference, step}, Step(step));
      Pass(10);
      EXPECT_EQ(meter_.Running().front().step, step);
      EXPECT_EQ(meter_.Running().front().steps, 5);
      // The wall clock does not matter.
      clock_.Jump(absl::Hours(1));
      EXPECT_EQ(meter_.Running().front().stage, "Step_Inference");
      EXPECT_EQ(meter_.Running().front().in_stage, absl::Seconds(10));
      span.Finish().IgnoreError();
    }
    Pass(4);
    EXPECT_EQ(meter_.Running().front().step, 5);
    EXPECT_EQ(meter_.Running().front().since_step, absl::Seconds(4));
    EXPECT_EQ(meter_.Running().front().elapsed, absl::Seconds(27));
    EXPECT_EQ(meter_.Running().front().stage, "Other");
  }
  EXPECT_TRUE(meter_.Running().empty());
}

TEST_F(StageMeterTest, ASinkThatGoesWithItsSpanOpenLeavesNothingRunning) {
  auto sink = meter_.NewSink({"m", "jobs/2", 1, {64, 32, 5}});
  sink->OnSpanStart({StageKind::kTotalExecution, clock_.Now(), nullptr});
  EXPECT_FALSE(meter_.Running().empty());
  sink = nullptr;
  EXPECT_TRUE(meter_.Running().empty());
}

TEST_F(StageMeterTest, OperationsAreThoseOfThePlan) {
  recorder_.Record({"planned_flops", 3e12, {{"stage", "Step_0_Inference"}}});
  recorder_.Record({"planned_flops", 5e11, {{"stage", "VAE_Decoding"}}});
  for (const int step : {0, 1}) {  // the second has no plan
    recorder_.StartSpan({StageKind::kStepInference, step}, Step(step)).Finish().IgnoreError();
  }
  recorder_.StartSpan(StageKind::kVaeDecoding).Finish(absl::InternalError("")).IgnoreError();
  const PrometheusText text = Scrape();
  EXPECT_EQ(text.Value("wan_stage_flops_total",
                       {{"model", "m"}, {"quality", "high"}, {"stage", "Step_Inference"}}),
            3e12);
  EXPECT_EQ(
      text.Value("wan_step_flops_total",
                 {{"model", "m"}, {"quality", "high"}, {"expert", "only"}, {"shape", "64x32x5"}}),
      3e12);
  EXPECT_EQ(text.Value("wan_stage_flops_total",
                       {{"model", "m"}, {"quality", "high"}, {"stage", "VAE_Decoding"}}),
            std::nullopt);
}

TEST_F(StageMeterTest, QualitiesAreToldApart) {
  for (const char* const quality : {"exact", "fast"}) {
    auto sink = meter_.NewSink({"m", "jobs/2", 1, {64, 32, 5}, quality});
    Recorder recorder(clock_, monitor_, {sink.get()});
    Span total = recorder.StartSpan(StageKind::kTotalExecution);
    Span step = recorder.StartSpan({StageKind::kStepInference, 0}, Step(0));
    Pass(quality == std::string("exact") ? 9 : 2);
    step.Finish().IgnoreError();
    total.Finish().IgnoreError();
  }
  const PrometheusText text = Scrape();
  for (const auto& [quality, seconds] : {std::pair("exact", 9), std::pair("fast", 2)}) {
    const support::PrometheusLabels stage = {
        {"model", "m"}, {"quality", quality}, {"stage", "Step_Inference"}};
    EXPECT_EQ(text.Value("wan_stage_seconds_sum", stage), seconds);
    EXPECT_EQ(text.Value("wan_execution_seconds_total", stage), seconds);
    EXPECT_EQ(text.Value(
                  "wan_step_seconds_sum",
                  {{"expert", "only"}, {"model", "m"}, {"quality", quality}, {"shape", "64x32x5"}}),
              seconds);
  }
}

TEST(ShapeLabelsTest, CallersCannotMakeAnyNumberOfLabels) {
  ShapeLabels labels;
  for (int i = 1; i <= 100; ++i) {
    const std::string label = labels.LabelOf({32 * i, 32, 5});
    EXPECT_EQ(label, i <= 32 ? absl::StrCat(32 * i, "x32x5") : "other");
  }
  EXPECT_EQ(labels.LabelOf({32, 32, 5}), "32x32x5");
}

}  // namespace
}  // namespace wan::server
