#include "server/open_objects.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>

#include "engine/api/clock.h"
#include "server/metrics/exposition.h"
#include "server/metrics/metrics.h"
#include "tests/support/moto_server.h"

namespace wan::server {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Returns the metrics after the store was opened.
std::string MetricsOf(const std::string& objects) {
  ServerConfig config;
  config.objects = objects;
  Logger logger(LogLevel::kError, LogFormat::kText, SystemClock(), [](std::string_view) {});
  Metrics metrics({}, SystemClock());
  const auto store = OpenObjects(config, SystemClock(), logger, metrics);
  EXPECT_TRUE(store.ok()) << store.status();
  return WriteMetrics(metrics.scrapes()->Collect(), MetricFormat::kText);
}

TEST(OpenObjectsTest, MetricsCountRequestsToABucketAlone) {
  EXPECT_THAT(MetricsOf(""), Not(HasSubstr("wan_object_")));
  const std::filesystem::path folder =
      testing::TempDir() + "open_objects_" + std::to_string(getpid());
  std::filesystem::create_directory(folder);
  EXPECT_THAT(MetricsOf("file://" + folder.string()), Not(HasSubstr("wan_object_")));
  std::filesystem::remove(folder);
  ASSERT_TRUE(support::MotoServer::IsThere()) << "run scripts/setup, which fetches moto";
  const support::MotoServer moto;
  setenv("AWS_ACCESS_KEY_ID", "name", 1);
  setenv("AWS_SECRET_ACCESS_KEY", "value", 1);
  EXPECT_THAT(MetricsOf(moto.Place("opened")),
              HasSubstr("wan_object_requests_total{operation=\"list\",outcome=\"ok\"} 1\n"));
}

}  // namespace
}  // namespace wan::server
