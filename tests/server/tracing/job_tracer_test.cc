#include "server/tracing/job_tracer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "server/tracing/span_ids.h"
#include "tests/fakes/fake_clock.h"

namespace wan::server {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(SpanIdsTest, AJobAndItsAttemptsHaveTheSameIdsInEveryProcess) {
  // Changing them breaks the traces of jobs that run over an upgrade.
  EXPECT_EQ(JobSpanId("jobs/a"), "0e10307c08cb6194");
  EXPECT_EQ(AttemptSpanId("jobs/a", 1), "6cf7b712fd8e3c4b");
  EXPECT_NE(AttemptSpanId("jobs/a", 1), AttemptSpanId("jobs/a", 2));
  EXPECT_NE(NewSpanId(), NewSpanId());
}

TEST(SpanIdsTest, TheRatioIsTheShareThatIsSampled) {
  const auto sampled = [](double ratio) {
    int count = 0;
    for (int i = 0; i < 2000; ++i) {
      const wan::v1::TraceContext trace = NewTrace(ratio);
      EXPECT_THAT(trace.trace_id(), SizeIs(32));
      EXPECT_THAT(trace.parent_span_id(), IsEmpty());
      count += trace.sampled() ? 1 : 0;
    }
    return count;
  };
  EXPECT_EQ(sampled(0), 0);
  EXPECT_EQ(sampled(1), 2000);
  EXPECT_NEAR(sampled(0.25), 500, 150);  // more than seven standard deviations
}

class JobTracerTest : public ::testing::Test {
 protected:
  // The spans that were exported, by name.
  std::map<std::string, nlohmann::json> Spans() {
    exporter_.Stop();
    std::map<std::string, nlohmann::json> spans;
    for (const nlohmann::json& request : requests_) {
      for (const nlohmann::json& span : request["resourceSpans"][0]["scopeSpans"][0]["spans"]) {
        spans[span["name"]] = span;
      }
    }
    return spans;
  }

  fakes::FakeClock clock_;
  std::vector<nlohmann::json> requests_;  // of the exporter's thread, until that has ended
  SpanExporter exporter_{{},
                         [this](const std::string& request, const std::stop_token&) {
                           requests_.push_back(nlohmann::json::parse(request));
                           return PostAnswer{200, "", {}};
                         },
                         clock_,
                         {}};
  JobTracer tracer_{exporter_};
};

TEST_F(JobTracerTest, MergingALoraIsAPartOfItsStepsLoading) {
  SinkContext context{"m", "jobs/a", 2};
  context.trace = NewTrace(1);
  const auto sink = tracer_.StageSinks()(context);
  const absl::Time start = clock_.Now();
  const auto step = std::make_shared<const StepFacts>(StepFacts{2, 4, 500.0});
  const Stage loading(StageKind::kStepLoading, 2);
  sink->OnSpanStart({StageKind::kTotalExecution, start, nullptr});
  sink->OnSpanStart({loading, start, step});
  sink->OnSpanStart({StageKind::kLoraMerging, start, nullptr});
  sink->OnSpanEnd({.stage = StageKind::kLoraMerging, .start = start, .seconds = 1});
  sink->OnSpanEnd({.stage = loading, .start = start, .seconds = 2, .step = step});
  sink->OnSpanEnd({.stage = StageKind::kTotalExecution, .start = start, .seconds = 3});
  const auto spans = Spans();
  ASSERT_THAT(spans, SizeIs(3));
  EXPECT_EQ(spans.at("LoRA_Merging")["parentSpanId"], spans.at("Step_2_Loading")["spanId"]);
  const nlohmann::json& attempt = spans.at("Total_Execution");
  EXPECT_EQ(spans.at("Step_2_Loading")["parentSpanId"], attempt["spanId"]);
  EXPECT_EQ(attempt["links"][0]["spanId"], AttemptSpanId("jobs/a", 1));
  EXPECT_NE(attempt.dump().find(R"({"key":"wan.resumed_steps","value":{"intValue":"2"}})"),
            std::string::npos);
}

TEST_F(JobTracerTest, WhatIsNotSampledHasNoSpan) {
  SinkContext load{"m", ""};  // a model is loaded
  SinkContext unsampled{"m", "jobs/a", 1};
  unsampled.trace = NewTrace(0);
  for (const SinkContext& context : {load, unsampled}) {
    const auto sink = tracer_.StageSinks()(context);
    sink->OnSpanStart({StageKind::kTotalExecution, clock_.Now(), nullptr});
    sink->OnSpanEnd({.stage = StageKind::kTotalExecution, .start = clock_.Now()});
  }
  wan::v1::Job job;
  *job.mutable_trace() = unsampled.trace;
  job.set_state(wan::v1::JOB_STATE_COMPLETED);
  tracer_.OnJobState(job, wan::v1::JOB_STATE_RUNNING);
  EXPECT_THAT(Spans(), IsEmpty());
}

}  // namespace
}  // namespace wan::server
