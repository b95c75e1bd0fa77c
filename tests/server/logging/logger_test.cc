#include "server/logging/logger.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "server/logging/activity_log.h"
#include "tests/fakes/fake_clock.h"
#include "wan/v1/video_generation.pb.h"

namespace wan::server {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class LoggerTest : public ::testing::Test {
 protected:
  Logger::Writer Writer() {
    return [this](std::string_view line) { lines_.emplace_back(line); };
  }

  fakes::FakeClock clock_;
  std::vector<std::string> lines_;
};

TEST_F(LoggerTest, JsonLinesKeepTheOrderAndTheTypesOfFields) {
  Logger logger(LogLevel::kInfo, LogFormat::kJson, clock_, Writer());
  clock_.Advance(absl::Milliseconds(1234));
  logger.Log(LogLevel::kWarning, "job",
             {{"name", "jobs/1"}, {"attempt", 2}, {"seconds", 0.5}, {"done", true}});
  EXPECT_THAT(lines_, ElementsAre("{\"time\":\"2026-01-01T00:00:01.234Z\",\"level\":\"warning\","
                                  "\"message\":\"job\",\"name\":\"jobs/1\",\"attempt\":2,"
                                  "\"seconds\":0.5,\"done\":true}\n"));
}

TEST_F(LoggerTest, AnEntryIsOneLineOfValidJsonWhateverItHolds) {
  Logger logger(LogLevel::kInfo, LogFormat::kJson, clock_, Writer());
  logger.Log(LogLevel::kError, "two\nlines \"quoted\"", {{"bytes", "\xff\xfe\0x"}});
  ASSERT_EQ(lines_.size(), 1u);
  EXPECT_EQ(lines_[0].find('\n'), lines_[0].size() - 1);
  const auto parsed = nlohmann::json::parse(lines_[0]);
  EXPECT_EQ(parsed["message"], "two\nlines \"quoted\"");
  EXPECT_EQ(parsed["bytes"], "\xEF\xBF\xBD\xEF\xBF\xBD");  // U+FFFD for each wrong byte
}

TEST_F(LoggerTest, TextIsOneLineToo) {
  Logger logger(LogLevel::kInfo, LogFormat::kText, clock_, Writer());
  logger.Log(LogLevel::kInfo, "two\nlines", {{"path", "/a b"}, {"n", 3}});
  EXPECT_THAT(lines_, ElementsAre("2026-01-01T00:00:00.000Z INFO two\\nlines path=\"/a b\" n=3\n"));
}

// Makes standard error another descriptor, which it closes, as long as this object lives.
class StandardErrorIs {
 public:
  explicit StandardErrorIs(int descriptor) : before_(dup(STDERR_FILENO)) {
    EXPECT_GE(descriptor, 0);
    dup2(descriptor, STDERR_FILENO);
    close(descriptor);
  }
  StandardErrorIs(const StandardErrorIs&) = delete;
  StandardErrorIs& operator=(const StandardErrorIs&) = delete;
  ~StandardErrorIs() {
    dup2(before_, STDERR_FILENO);
    close(before_);
  }

 private:
  const int before_;
};

TEST_F(LoggerTest, WritesTextToATerminalAndJsonElsewhere) {
  Logger logger(LogLevel::kInfo, LogFormat::kJson, clock_, Writer());
  const int terminal = posix_openpt(O_RDWR | O_NOCTTY);
  ASSERT_EQ(grantpt(terminal), 0);
  ASSERT_EQ(unlockpt(terminal), 0);
  {
    const StandardErrorIs standard_error(open(ptsname(terminal), O_RDWR | O_NOCTTY));
    logger.SetFormat(LogFormat::kAuto);
    logger.Log(LogLevel::kInfo, "a person reads it");
    Logger(LogLevel::kInfo, LogFormat::kJson, clock_, Writer()).Log(LogLevel::kInfo, "asked for");
  }
  {
    const StandardErrorIs standard_error(open("/dev/null", O_WRONLY));
    Logger(LogLevel::kInfo, LogFormat::kAuto, clock_, Writer()).Log(LogLevel::kInfo, "a program");
  }
  close(terminal);
  EXPECT_THAT(lines_, ElementsAre("2026-01-01T00:00:00.000Z INFO a person reads it\n",
                                  HasSubstr("\"message\":\"asked for\""),
                                  HasSubstr("\"message\":\"a program\"")));
}

TEST_F(LoggerTest, EntriesBelowTheLevelAreDropped) {
  Logger logger(LogLevel::kWarning, LogFormat::kText, clock_, Writer());
  logger.Log(LogLevel::kDebug, "no");
  logger.Log(LogLevel::kInfo, "no");
  EXPECT_THAT(lines_, IsEmpty());
  logger.Log(LogLevel::kWarning, "yes");
  logger.Log(LogLevel::kError, "yes");
  EXPECT_EQ(lines_.size(), 2u);
}

TEST_F(LoggerTest, AFallbackOfTheAutoencoderIsOneEntryAnAttempt) {
  Logger logger(LogLevel::kInfo, LogFormat::kText, clock_, Writer());
  ActivityLog activity(logger);
  const auto attempt = [&](int number, int samples) {
    const auto sink = activity.StageSinks()({"m", "jobs/1", number});
    for (int i = 0; i < samples; ++i) {
      sink->OnSample({"vae_fallback", 1, {{"from", "fp16"}, {"to", "bf16"}}});
      sink->OnSample({"stop_seconds", 1, {}});
    }
  };
  attempt(1, 3);
  EXPECT_THAT(lines_, ElementsAre(AllOf(HasSubstr("vae fallback"), HasSubstr("fp16"),
                                        HasSubstr("bf16"), HasSubstr("jobs/1"))));
  attempt(2, 1);
  EXPECT_EQ(lines_.size(), 2u);
  attempt(3, 0);
  EXPECT_EQ(lines_.size(), 2u);
}

TEST_F(LoggerTest, AFailedJobIsAnErrorOnlyWhereWeightsOrFilesAreAtFault) {
  Logger logger(LogLevel::kError, LogFormat::kText, clock_, Writer());
  ActivityLog activity(logger);
  wan::v1::Job job;
  job.set_name("jobs/1");
  job.set_state(wan::v1::JOB_STATE_FAILED);
  job.mutable_error()->set_code(static_cast<int>(absl::StatusCode::kResourceExhausted));
  activity.OnJobState(job, wan::v1::JOB_STATE_RUNNING);
  EXPECT_THAT(lines_, IsEmpty());
  job.mutable_error()->set_code(static_cast<int>(absl::StatusCode::kDataLoss));
  job.mutable_error()->set_message("the latents are not finite");
  activity.OnJobState(job, wan::v1::JOB_STATE_RUNNING);
  EXPECT_THAT(lines_,
              ElementsAre(AllOf(HasSubstr("jobs/1"), HasSubstr("the latents are not finite"))));
}

TEST_F(LoggerTest, ALoadedModelsAttentionIsOneEntry) {
  Logger logger(LogLevel::kInfo, LogFormat::kText, clock_, Writer());
  ActivityLog activity(logger);
  const auto sink = activity.StageSinks()({"m", "", 0});
  sink->OnSample({"component_memory_bytes", 1, {{"model", "m"}}});
  sink->OnSample({"attention_kernels", 1, {{"self", "hopper"}, {"cross", "cudnn"}}});
  EXPECT_THAT(lines_, ElementsAre(AllOf(HasSubstr("attention"), HasSubstr("self=\"hopper\""),
                                        HasSubstr("cross=\"cudnn\""), HasSubstr("model=\"m\""))));
}

TEST_F(LoggerTest, WidenedWeightsAreOneEntryAComponent) {
  Logger logger(LogLevel::kInfo, LogFormat::kText, clock_, Writer());
  ActivityLog activity(logger);
  wan::v1::Model model;
  model.set_name("models/m");
  model.set_state(wan::v1::MODEL_STATE_READY);
  model.add_components()->set_name("vae");
  wan::v1::ModelComponent& transformer = *model.add_components();
  transformer.set_name("transformer");
  transformer.set_stored_as("Q4_K, Q6_K");
  transformer.set_dtype("bf16");
  activity.OnModelState(model);
  ASSERT_EQ(lines_.size(), 2u);
  EXPECT_THAT(lines_.back(), AllOf(HasSubstr("INFO widened weights model=\"models/m\""),
                                   HasSubstr("component=\"transformer\" stored_as=\"Q4_K, Q6_K\""),
                                   HasSubstr("dtype=\"bf16\"")));
}

TEST_F(LoggerTest, ACompletedJobHasItsFigures) {
  Logger logger(LogLevel::kInfo, LogFormat::kText, clock_, Writer());
  ActivityLog activity(logger);
  wan::v1::Job job;
  job.set_name("jobs/1");
  job.set_attempt(2);
  job.set_state(wan::v1::JOB_STATE_RUNNING);
  job.mutable_request()->set_model("m");
  job.mutable_request()->set_steps(50);
  job.mutable_request()->set_width(1280);
  job.mutable_request()->set_height(704);
  job.mutable_request()->set_num_frames(121);
  job.mutable_start_time()->set_seconds(100);
  activity.OnJobState(job, wan::v1::JOB_STATE_QUEUED);
  EXPECT_THAT(lines_.back(), testing::Not(HasSubstr("seconds")));
  job.set_state(wan::v1::JOB_STATE_COMPLETED);
  job.mutable_end_time()->set_seconds(107);
  job.mutable_end_time()->set_nanos(500'000'000);
  job.add_artifacts()->set_size_bytes(1000);
  job.add_artifacts()->set_size_bytes(24);
  activity.OnJobState(job, wan::v1::JOB_STATE_RUNNING);
  EXPECT_THAT(lines_.back(),
              AllOf(HasSubstr("INFO job job=\"jobs/1\" model=\"m\""), HasSubstr("attempt=2"),
                    HasSubstr("seconds=7.5 steps=50 shape=\"1280x704x121\" bytes=1024")));
}

TEST_F(LoggerTest, ASlowJobIsAWarningThatNamesItsSlowestStage) {
  Logger logger(LogLevel::kInfo, LogFormat::kText, clock_, Writer());
  ActivityLog activity(logger);
  wan::v1::Job job;
  job.set_name("jobs/1");
  const auto took = [&](double seconds, double p90) {
    activity.OnEstimateMet(job, {absl::Seconds(seconds), absl::Seconds(5), absl::Seconds(p90),
                                 "Step_Inference", absl::Seconds(12)});
  };
  took(15, 10);
  took(3, 1.5);  // too short to be worth a line
  EXPECT_THAT(lines_, IsEmpty());
  took(15.5, 10);
  EXPECT_THAT(
      lines_,
      ElementsAre(AllOf(HasSubstr("WARNING slow job job=\"jobs/1\""), HasSubstr("seconds=15.5"),
                        HasSubstr("estimate_p50_seconds=5.0 estimate_p90_seconds=10.0"),
                        HasSubstr("slowest_stage=\"Step_Inference\" slowest_stage_seconds=12.0"))));
}

TEST_F(LoggerTest, HealthSaysWhyTheServerTakesNoJobs) {
  Logger logger(LogLevel::kInfo, LogFormat::kText, clock_, Writer());
  ActivityLog activity(logger);
  activity.OnHealth({{"MODEL_LOADING", "model 'm' is being loaded"}});
  EXPECT_THAT(lines_.back(), AllOf(HasSubstr("INFO not serving reasons=\"MODEL_LOADING\""),
                                   HasSubstr("why=\"model 'm' is being loaded\"")));
  activity.OnHealth({{"DRAINING", "it is drained"}, {"DISK_FULL", "1 byte is free"}});
  EXPECT_THAT(lines_.back(), AllOf(HasSubstr("WARNING not serving reasons=\"DRAINING, DISK_FULL\""),
                                   HasSubstr("why=\"it is drained; 1 byte is free\"")));
  activity.OnHealth({});
  EXPECT_THAT(lines_.back(), HasSubstr("INFO serving"));
}

TEST_F(LoggerTest, LevelAndFormatMayChange) {
  Logger logger(LogLevel::kError, LogFormat::kJson, clock_, Writer());
  logger.Log(LogLevel::kInfo, "hidden");
  logger.SetLevel(LogLevel::kDebug);
  logger.SetFormat(LogFormat::kText);
  logger.Log(LogLevel::kDebug, "shown");
  EXPECT_THAT(lines_, ElementsAre(HasSubstr(" DEBUG shown")));
}

TEST_F(LoggerTest, ALimitedLogLetsItsNumberThroughAndTellsHowManyItLeftOut) {
  Logger logger(LogLevel::kInfo, LogFormat::kJson, clock_, Writer());
  LimitedLog log(logger, clock_, "grpc", 2, absl::Seconds(10));
  for (int i = 0; i < 5; ++i) log.Log(LogLevel::kError, "broken", "tcp.cc", 7);
  ASSERT_EQ(lines_.size(), 2u);
  EXPECT_THAT(lines_[1], HasSubstr("\"source\":\"grpc\",\"file\":\"tcp.cc\",\"line\":7}"));
  clock_.Advance(absl::Seconds(9));
  log.Log(LogLevel::kError, "broken", "tcp.cc", 7);
  EXPECT_EQ(lines_.size(), 2u) << "the window has not ended";
  clock_.Advance(absl::Seconds(1));
  log.Log(LogLevel::kError, "broken", "tcp.cc", 7);
  ASSERT_EQ(lines_.size(), 4u);
  EXPECT_THAT(lines_[2], HasSubstr("\"messages were left out\",\"source\":\"grpc\",\"count\":4}"));
  clock_.Advance(absl::Seconds(10));
  log.Log(LogLevel::kError, "broken", "tcp.cc", 7);
  EXPECT_EQ(lines_.size(), 5u) << "nothing was left out in between";
}

TEST_F(LoggerTest, AFieldThatAnEntryDoesNotHaveIsNotWritten) {
  Logger logger(LogLevel::kInfo, LogFormat::kText, clock_, Writer());
  logger.Log(LogLevel::kInfo, "job", {{"name", "jobs/1"}, LogField(), {"n", 3}});
  EXPECT_THAT(lines_, ElementsAre(HasSubstr(" INFO job name=\"jobs/1\" n=3\n")));
}

// The process has one handler of protobuf's messages and one std::cerr, so this is the one test
// that sets them.
TEST_F(LoggerTest, WhatLibrariesComplainOfComesAsEntriesAndIsLimited) {
  // Both live as long as the process, as RouteLibraryLogs asks.
  static auto* const clock = new fakes::FakeClock;
  static auto* const lines = new std::vector<std::string>;
  static auto* const logger = new Logger(LogLevel::kInfo, LogFormat::kJson, *clock,
                                         [](std::string_view line) { lines->emplace_back(line); });
  RouteLibraryLogs(*logger, *clock);
  wan::v1::GetJobRequest request;
  request.set_name("\xff");
  for (int i = 0; i < 1000; ++i) request.SerializeAsString();
  ASSERT_EQ(lines->size(), 20u);
  const auto parsed = nlohmann::json::parse(lines->front());
  EXPECT_EQ(parsed["source"], "protobuf");
  EXPECT_EQ(parsed["level"], "warning");
  EXPECT_THAT(parsed["message"].get<std::string>(), HasSubstr("invalid UTF-8"));

  lines->clear();
  std::cerr << "[W something.cpp:" << 7 << "] a warning\nanother" << std::endl;
  std::thread([] { std::cerr << "of another "; }).join();
  std::clog << "thread\n";
  ASSERT_EQ(lines->size(), 3u) << "the thread's line had no end";
  const auto warning = nlohmann::json::parse(lines->front());
  EXPECT_EQ(warning["source"], "stderr");
  EXPECT_EQ(warning["message"], "[W something.cpp:7] a warning");
  EXPECT_FALSE(warning.contains("file"));
  EXPECT_EQ(nlohmann::json::parse((*lines)[1])["message"], "another");
  EXPECT_EQ(nlohmann::json::parse((*lines)[2])["message"], "thread");
  lines->clear();
  for (int i = 0; i < 1000; ++i) std::cerr << i << '\n';
  EXPECT_EQ(lines->size(), 17u) << "20 of a source, three of which came before";
}

}  // namespace
}  // namespace wan::server
