#include "server/metrics/process_metrics.h"

#include <gtest/gtest.h>
#include <prometheus/metric_family.h>

#include <map>
#include <string>

namespace wan::server {
namespace {

TEST(ProcessMetricsTest, ReadsTheFieldsOfProc) {
  // The name has what separates fields. Fields 14 and 15 are ticks, 20 threads, 22 ticks since the
  // boot, 23 bytes, 24 pages.
  const ProcessFigures figures = ParseProcessStat(
      "42 (a ) b (c) S 1 42 42 0 -1 4194560 100 0 0 0 250 50 0 0 20 0 7 0 12300 4096000 100 184467",
      1000, 100, 4096);
  EXPECT_EQ(figures.cpu_seconds, 3);
  EXPECT_EQ(figures.threads, 7);
  EXPECT_EQ(figures.start_time, 1123);
  EXPECT_EQ(figures.virtual_bytes, 4096000);
  EXPECT_EQ(figures.resident_bytes, 409600);
}

TEST(ProcessMetricsTest, TextOfAnotherFormGivesNothing) {
  for (const char* const text : {"", "42 (name", "42 (name) S", "42 (name) S x y z"}) {
    const ProcessFigures figures = ParseProcessStat(text, 0, 100, 4096);
    EXPECT_EQ(figures.cpu_seconds, 0) << text;
    EXPECT_EQ(figures.resident_bytes, 0) << text;
  }
}

TEST(ProcessMetricsTest, TellsOfThisProcess) {
  WireStats wire;
  wire.descriptors = 5;
  wire.descriptors_limit = 1024;
  std::vector<prometheus::MetricFamily> families;
  AddProcess(wire, families);
  std::map<std::string, double> values;
  for (const auto& family : families) {
    const auto& metric = family.metric.at(0);
    values[family.name] =
        family.type == prometheus::MetricType::Counter ? metric.counter.value : metric.gauge.value;
  }
  EXPECT_EQ(values["process_open_fds"], 5);
  EXPECT_EQ(values["process_max_fds"], 1024);
  EXPECT_GE(values["process_threads"], 1);
  EXPECT_GT(values["process_resident_memory_bytes"], 1 << 20);
  EXPECT_GT(values["process_virtual_memory_bytes"], values["process_resident_memory_bytes"]);
  EXPECT_GT(values["process_start_time_seconds"], 1.6e9);
}

}  // namespace
}  // namespace wan::server
