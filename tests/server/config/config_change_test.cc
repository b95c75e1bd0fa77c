#include "server/config/config_change.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/config/settings.h"

namespace wan::server {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

ServerConfig Started() {
  ServerConfig config;
  config.data_dir = "/data";
  config.models = {{"m", "/models/m"}};
  return config;
}

TEST(ConfigChangeTest, EqualSettingsAreNoChange) {
  ServerConfig config = Started();
  const ConfigChange change = TakeOver(Started(), config);
  EXPECT_THAT(change.reloaded, IsEmpty());
  EXPECT_THAT(change.needs_restart, IsEmpty());
}

TEST(ConfigChangeTest, TakesOverWhatMayChangeAndNamesTheRest) {
  ServerConfig next = Started();
  next.log_level = LogLevel::kDebug;
  next.log_format = LogFormat::kText;
  next.disk_reserve = 7;
  next.retention.artifacts.count = 3;
  next.shutdown_mode = StopMode::kFinish;
  next.shutdown_grace_seconds = 600;
  next.listen.port = 1;
  next.models = {{"n", "/models/n"}};
  next.queue_capacity = 5;
  ServerConfig config = Started();
  const ConfigChange change = TakeOver(next, config);
  EXPECT_THAT(change.reloaded, ElementsAre("disk_reserve", "retain_artifacts", "shutdown_mode",
                                           "shutdown_grace_seconds", "log_level", "log_format"));
  EXPECT_THAT(change.needs_restart, ElementsAre("listen", "models", "queue_capacity"));
  EXPECT_EQ(config.log_level, LogLevel::kDebug);
  EXPECT_EQ(config.log_format, LogFormat::kText);
  EXPECT_EQ(config.disk_reserve, 7u);
  EXPECT_EQ(config.retention.artifacts.count, 3);
  EXPECT_EQ(config.shutdown_mode, StopMode::kFinish);
  EXPECT_EQ(config.shutdown_grace_seconds, 600);
  EXPECT_EQ(config.listen, Started().listen);
  EXPECT_EQ(config.models.front().name, "m");
  EXPECT_EQ(config.queue_capacity, Started().queue_capacity);
}

}  // namespace
}  // namespace wan::server
