#include "server/logging/logger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/fakes/fake_clock.h"

namespace wan::server {
namespace {

using ::testing::ElementsAre;
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

TEST_F(LoggerTest, EntriesBelowTheLevelAreDropped) {
  Logger logger(LogLevel::kWarning, LogFormat::kText, clock_, Writer());
  logger.Log(LogLevel::kDebug, "no");
  logger.Log(LogLevel::kInfo, "no");
  EXPECT_THAT(lines_, IsEmpty());
  logger.Log(LogLevel::kWarning, "yes");
  logger.Log(LogLevel::kError, "yes");
  EXPECT_EQ(lines_.size(), 2u);
}

}  // namespace
}  // namespace wan::server
