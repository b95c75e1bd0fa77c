#include "server/process/reloader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/fakes/fake_clock.h"

namespace wan::server {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ReloaderTest : public ::testing::Test {
 protected:
  ReloaderTest() {
    reloader_.Add({"auth_tokens", [this] { return tokens_; }});
    reloader_.Add({"quotas", [] { return absl::OkStatus(); }});
  }

  fakes::FakeClock clock_;
  std::vector<std::string> lines_;
  Logger logger_{LogLevel::kInfo, LogFormat::kText, clock_,
                 [this](std::string_view line) { lines_.emplace_back(line); }};
  absl::Status tokens_;
  std::vector<uint64_t> applied_;
  ServerConfig started_ = [] {
    ServerConfig config;
    config.log_format = LogFormat::kText;
    return config;
  }();
  Reloader reloader_{started_, {logger_, [this](const ServerConfig& config) {
                                  applied_.push_back(config.disk_reserve);
                                }}};
};

TEST_F(ReloaderTest, SaysWhatWasReloadedAndWhatNeedsARestart) {
  ServerConfig next = started_;
  next.disk_reserve = 7;
  next.queue_capacity = 5;
  reloader_.Reload(next);
  EXPECT_THAT(
      lines_,
      ElementsAre(AllOf(HasSubstr("INFO reloaded settings=\"disk_reserve\""),
                        HasSubstr("files=\"auth_tokens, quotas\"")),
                  HasSubstr("WARNING settings need a restart settings=\"queue_capacity\"")));
  EXPECT_THAT(applied_, ElementsAre(7u));
  EXPECT_EQ(reloader_.current().disk_reserve, 7u);
  EXPECT_EQ(reloader_.current().queue_capacity, started_.queue_capacity);
}

TEST_F(ReloaderTest, WhatFailsStaysAsItWasAndTheRestIsReloaded) {
  tokens_ = absl::InvalidArgumentError("tokens:3: is no hash");
  reloader_.Reload(absl::InvalidArgumentError("wan.yaml:2: quue_capacity is unknown"));
  EXPECT_THAT(lines_, ElementsAre(AllOf(HasSubstr("ERROR not reloaded what=\"auth_tokens\""),
                                        HasSubstr("tokens:3: is no hash")),
                                  AllOf(HasSubstr("ERROR not reloaded what=\"settings\""),
                                        HasSubstr("quue_capacity is unknown")),
                                  AllOf(HasSubstr("INFO reloaded settings=\"\""),
                                        HasSubstr("files=\"quotas\""))));
  EXPECT_TRUE(applied_.empty());
}

TEST_F(ReloaderTest, AChangeOfTheLevelIsLoggedWhicheverWayItGoes) {
  ServerConfig next = started_;
  next.log_level = LogLevel::kError;
  reloader_.Reload(next);
  EXPECT_THAT(lines_, ElementsAre(HasSubstr("reloaded settings=\"log_level\"")));
  logger_.Log(LogLevel::kInfo, "hidden");
  reloader_.Reload(started_);
  EXPECT_EQ(lines_.size(), 2u);
  logger_.Log(LogLevel::kInfo, "shown");
  EXPECT_EQ(lines_.size(), 3u);
}

}  // namespace
}  // namespace wan::server
