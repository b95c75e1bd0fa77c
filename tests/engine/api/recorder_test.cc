#include "engine/api/recorder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

namespace wan {
namespace {

// A clock that moves only when told to.
class SteppedClock final : public Clock {
 public:
  absl::Time Now() const override { return absl::UnixEpoch() + absl::Nanoseconds(nanos); }
  int64_t MonotonicNanos() const override { return nanos; }
  bool AwaitUntil(absl::Mutex&, const absl::Condition& condition, absl::Time) override {
    return condition.Eval();
  }
  Clock& Steady() override { return *this; }
  int64_t nanos = 0;
};

class CountingMonitor final : public DeviceMonitor {
 public:
  std::unique_ptr<ResourceProbe> StartProbe() override {
    class Probe final : public ResourceProbe {
     public:
      ResourceUsage Finish() override {
        ResourceUsage usage;
        usage.cpu_percent = 42.0;
        return usage;
      }
    };
    return std::make_unique<Probe>();
  }
  std::vector<DeviceSample> Sample() override { return {}; }
};

class LoggingSink final : public TelemetrySink {
 public:
  void OnSpanStart(const SpanStart& start) override {
    log.push_back("start " + NameOf(start.stage));
  }
  void OnSpanEnd(const SpanRecord& record) override {
    log.push_back("end " + NameOf(record.stage));
    records.push_back(record);
  }
  void OnSample(const Sample& sample) override { log.push_back("sample " + sample.name); }
  std::vector<std::string> log;
  std::vector<SpanRecord> records;
};

class RecorderTest : public testing::Test {
 protected:
  SteppedClock clock_;
  CountingMonitor monitor_;
  LoggingSink first_;
  LoggingSink second_;
  Recorder recorder_{clock_, monitor_, {&first_, &second_}};
};

TEST_F(RecorderTest, ASpanHasItsParts) {
  Span span = recorder_.StartSpan(StageKind::kT5Encoding);
  clock_.nanos += 500'000'000;
  EXPECT_DOUBLE_EQ(span.Seconds(), 0.5);
  span.AddPart({.name = "a", .start_seconds = 0.25, .seconds = 0.125, .bytes = 3});
  EXPECT_TRUE(span.Finish().ok());
  ASSERT_EQ(second_.records[0].parts.size(), 1u);
  EXPECT_EQ(second_.records[0].parts[0].name, "a");
  EXPECT_EQ(second_.records[0].parts[0].bytes, 3u);
}

TEST_F(RecorderTest, SpanMeasuresTimeAndUsageForEverySink) {
  clock_.nanos = 5'000'000'000;
  Span span = recorder_.StartSpan(StageKind::kT5Encoding);
  clock_.nanos += 1'500'000'000;
  EXPECT_TRUE(span.Finish().ok());
  for (const LoggingSink* sink : {&first_, &second_}) {
    EXPECT_THAT(sink->log, testing::ElementsAre("start T5_Encoding", "end T5_Encoding"));
    ASSERT_EQ(sink->records.size(), 1u);
    EXPECT_DOUBLE_EQ(sink->records[0].seconds, 1.5);
    EXPECT_EQ(sink->records[0].start, absl::UnixEpoch() + absl::Seconds(5));
    EXPECT_EQ(sink->records[0].usage.cpu_percent, 42.0);
    EXPECT_EQ(sink->records[0].usage.sm_activity_percent, std::nullopt);
  }
}

TEST_F(RecorderTest, FinishReportsOnceAndKeepsTheStatus) {
  {
    Span span = recorder_.StartSpan(StageKind::kVaeDecoding);
    EXPECT_EQ(span.Finish(absl::InternalError("broken")).message(), "broken");
    EXPECT_TRUE(span.Finish().ok());
  }
  ASSERT_EQ(first_.records.size(), 1u);
  EXPECT_EQ(first_.records[0].status.message(), "broken");
}

TEST_F(RecorderTest, ASpanThatIsLeftIsReportedAsUnfinished) {
  { const Span span = recorder_.StartSpan(StageKind::kVaeDecoding); }
  ASSERT_EQ(first_.records.size(), 1u);
  EXPECT_EQ(first_.records[0].status.code(), absl::StatusCode::kCancelled);
}

TEST_F(RecorderTest, AMovedSpanIsReportedOnce) {
  {
    Span span = recorder_.StartSpan(StageKind::kVaeDecoding);
    const Span other = std::move(span);
  }
  EXPECT_EQ(first_.records.size(), 1u);
}

TEST_F(RecorderTest, PastSpanHasItsDuration) {
  clock_.nanos = 9'000'000'000;
  recorder_.RecordPast(StageKind::kQueueWait, absl::UnixEpoch() + absl::Seconds(2),
                       absl::Seconds(7));
  ASSERT_EQ(first_.records.size(), 1u);
  EXPECT_DOUBLE_EQ(first_.records[0].seconds, 7.0);
  EXPECT_EQ(first_.records[0].usage.cpu_percent, std::nullopt);
}

// Telemetry is optional: whoever works between spans must not notice that it fails.
TEST(FailingTelemetryTest, ThrowsIntoNoWork) {
  class ThrowingSink final : public TelemetrySink {
   public:
    void OnSpanStart(const SpanStart&) override { throw std::runtime_error("start"); }
    void OnSpanEnd(const SpanRecord&) override { throw std::runtime_error("end"); }
    void OnSample(const Sample&) override { throw std::runtime_error("sample"); }
  };
  class ThrowingMonitor final : public DeviceMonitor {
   public:
    std::unique_ptr<ResourceProbe> StartProbe() override {
      class Probe final : public ResourceProbe {
       public:
        ResourceUsage Finish() override { throw std::runtime_error("probe"); }
      };
      if (begins) return std::make_unique<Probe>();
      throw std::runtime_error("monitor");
    }
    std::vector<DeviceSample> Sample() override { return {}; }
    bool begins = false;
  };
  SteppedClock clock;
  ThrowingMonitor monitor;
  ThrowingSink throwing;
  LoggingSink sound;
  Recorder recorder(clock, monitor, {&throwing, &sound});
  for (const bool begins : {false, true}) {
    monitor.begins = begins;
    EXPECT_TRUE(recorder.StartSpan(StageKind::kT5Encoding).Finish().ok());
    // A destructor that throws ends the process.
    { const Span left = recorder.StartSpan(StageKind::kVaeEncoding); }
  }
  recorder.RecordPast(StageKind::kQueueWait, clock.Now(), absl::ZeroDuration());
  recorder.Record({"d", 1, {}});
  EXPECT_THAT(sound.log,
              testing::ElementsAre("start T5_Encoding", "end T5_Encoding", "start VAE_Encoding",
                                   "end VAE_Encoding", "start T5_Encoding", "end T5_Encoding",
                                   "start VAE_Encoding", "end VAE_Encoding", "start Queue_Wait",
                                   "end Queue_Wait", "sample d"));
}

}  // namespace
}  // namespace wan
