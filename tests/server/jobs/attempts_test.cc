// Which attempts count as lost, and where they stood.
#include "server/jobs/attempts.h"

#include <string>
#include <vector>

#include "engine/api/errors.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/conversion/convert.h"
#include "server/conversion/errors.h"

namespace wan::server {
namespace {

using testing::HasSubstr;

wan::v1::Event Started(const std::string& stage, int64_t seconds) {
  wan::v1::Event event;
  *event.mutable_time() = ToProto(absl::FromUnixSeconds(seconds));
  event.mutable_stage_started()->set_stage(stage);
  return event;
}

wan::v1::Event Finished(const std::string& stage, int64_t seconds, const std::string& error = "") {
  wan::v1::Event event;
  *event.mutable_time() = ToProto(absl::FromUnixSeconds(seconds));
  event.mutable_stage_finished()->set_stage(stage);
  event.mutable_stage_finished()->set_error(error);
  return event;
}

TEST(AttemptTraceTest, TheInnermostStageThatHasNotEndedWell) {
  AttemptTrace trace;
  EXPECT_EQ(trace.stage(), "");
  trace.Add(Started("Total_Execution", 1));
  EXPECT_EQ(trace.stage(), "");
  trace.Add(Started("T5_Encoding", 2));
  EXPECT_EQ(trace.stage(), "T5_Encoding");
  trace.Add(Finished("T5_Encoding", 3));
  EXPECT_EQ(trace.stage(), "T5_Encoding") << "the latest, between two";
  trace.Add(Started("Step_0_Inference", 4));
  trace.Add(Finished("Step_0_Inference", 5, "device lost"));
  trace.Add(Finished("Total_Execution", 6, "device lost"));
  EXPECT_EQ(trace.stage(), "Step_0_Inference");
  EXPECT_EQ(trace.heard(), absl::FromUnixSeconds(6));
}

TEST(LostAttemptsTest, AnOrderlyEndTakesTheEntryOut) {
  wan::v1::Job job;
  job.set_attempt(1);
  EnterAttempt(job);
  EXPECT_TRUE(HasOpenAttempt(job));
  ClearAttempt(job);
  EXPECT_EQ(job.lost_attempts_size(), 0);
  ClearAttempt(job);
}

TEST(LostAttemptsTest, LostOnesStayAndAreTold) {
  wan::v1::Job job;
  for (int attempt = 1; attempt <= 2; ++attempt) {
    job.set_attempt(attempt);
    *job.mutable_start_time() = ToProto(absl::FromUnixSeconds(attempt * 100));
    EnterAttempt(job);
    AttemptTrace trace;
    if (attempt == 2) trace.Add(Started("VAE_Decoding", 250));
    LoseAttempt(job, trace, /*steps_kept=*/0);
    ClearAttempt(job);
  }
  ASSERT_EQ(job.lost_attempts_size(), 2);
  const absl::Status error = AttemptsExhaustedError(job);
  EXPECT_EQ(ReasonOf(error), kReasonAttemptsExhausted);
  EXPECT_THAT(std::string(error.message()),
              HasSubstr("attempt 1 last reported at 1970-01-01T00:01:40.000Z before its first "
                        "stage; attempt 2 last reported at 1970-01-01T00:04:10.000Z in "
                        "VAE_Decoding"));
}

// A job that has lost attempts whose savepoints had so many steps.
wan::v1::Job LostBehind(const std::vector<int>& steps) {
  wan::v1::Job job;
  for (const int kept : steps) {
    job.set_attempt(job.attempt() + 1);
    EnterAttempt(job);
    LoseAttempt(job, AttemptTrace(), kept);
  }
  return job;
}

TEST(LostAttemptsTest, ThoseCountSinceWhichNoStepWasKept) {
  EXPECT_EQ(LostWithoutProgress(LostBehind({})), 0);
  EXPECT_EQ(LostWithoutProgress(LostBehind({0, 0, 0})), 3) << "none keeps anything";
  EXPECT_EQ(LostWithoutProgress(LostBehind({4, 4, 4})), 3) << "lost behind the same step";
  EXPECT_EQ(LostWithoutProgress(LostBehind({4, 8, 12})), 1) << "each got further";
  EXPECT_EQ(LostWithoutProgress(LostBehind({4, 8, 8})), 2);
  EXPECT_EQ(LostWithoutProgress(LostBehind({8, 4, 8, 4})), 4)
      << "a savepoint that is not believed is no progress the second time";
}

TEST(LostAttemptsTest, OnlyThoseThatCountAreTold) {
  const std::string message(AttemptsExhaustedError(LostBehind({4, 8, 8})).message());
  EXPECT_THAT(message, HasSubstr("allows (2)"));
  EXPECT_THAT(message, HasSubstr("attempt 2 last"));
  EXPECT_THAT(message, testing::Not(HasSubstr("attempt 1 last")));
}

}  // namespace
}  // namespace wan::server
