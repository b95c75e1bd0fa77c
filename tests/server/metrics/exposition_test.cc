#include "server/metrics/exposition.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <prometheus/registry.h>

#include <set>

#include "server/metrics/catalog.h"
#include "server/metrics/families.h"
#include "tests/support/gunzip.h"
#include "tests/support/prometheus_text.h"

namespace wan::server {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Prometheus 2.42 (Debian 12) and 3.5 send these.
constexpr char kPrometheus2[] =
    "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,"
    "text/plain;version=0.0.4;q=0.5,*/*;q=0.1";
constexpr char kPrometheus3[] =
    "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,"
    "application/openmetrics-text;version=0.0.1;q=0.5,"
    "text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2";

TEST(ExpositionTest, OnlyWhoNamesOpenMetricsGetsIt) {
  for (const char* const accept :
       {kPrometheus2, kPrometheus3, "application/openmetrics-text",
        "Application/OpenMetrics-Text; Version=\"1.0.0\"; charset=utf-8"}) {
    EXPECT_EQ(ChooseFormat(accept), MetricFormat::kOpenMetrics) << accept;
  }
  for (const char* const accept :
       {"", "*/*", "text/html,*/*;q=0.8", "text/plain", "application/openmetrics-text;q=0",
        "application/openmetrics-text;version=0.0.1", "application/openmetrics-text;version=2.0.0",
        "application/openmetrics-text;version=1.0.0;q=0.2,text/plain;q=0.7",
        "application/openmetrics-text;q=nonsense", ";;;,,,"}) {
    EXPECT_EQ(ChooseFormat(accept), MetricFormat::kText) << accept;
  }
}

TEST(ExpositionTest, GzipForWhoTakesIt) {
  for (const char* const taken : {"gzip", "deflate, GZIP", "br;q=1, gzip;q=0.5", "*"}) {
    EXPECT_TRUE(TakesGzip(taken)) << taken;
  }
  for (const char* const refused :
       {"", "identity", "br, deflate", "gzip;q=0", "*;q=0", "*, gzip;q=0.0", "x-gzip-not"}) {
    EXPECT_FALSE(TakesGzip(refused)) << refused;
  }
}

TEST(ExpositionTest, GzipGivesTheTextBack) {
  for (const std::string& text : {std::string(), std::string("a"), std::string(300'000, 'x')}) {
    EXPECT_EQ(support::Gunzip(Gzip(text)), text);
  }
  EXPECT_LT(Gzip(std::string(300'000, 'x')).size(), 3'000u);
}

// A counter, a gauge, and a histogram with whole and broken bounds.
class WrittenMetricsTest : public ::testing::Test {
 protected:
  WrittenMetricsTest() {
    CounterFamily(registry_, "wan_attempt_seconds_total")
        .Add({{"model", "m\"\\\n"}, {"outcome", "completed"}})
        .Increment(1'234'567.125);
    GaugeFamily(registry_, "wan_device_lost").Add({{"cause", "error"}}).Set(1);
    GaugeFamily(registry_, "wan_system_memory_total_bytes").Add({}).Set(6e10);
    auto& histogram = HistogramFamily(registry_, "wan_job_seconds").Add({{"model", "m"}}, bounds_);
    for (const double seconds : {0.25, 1.0, 1.5, 2e6}) histogram.Observe(seconds);
  }

  std::string Written(MetricFormat format) const {
    return WriteMetrics({registry_.Collect(), exemplars_.Latest()}, format);
  }

  const prometheus::Histogram::BucketBoundaries bounds_ = {0.5, 1, 2, 1e6};
  prometheus::Registry registry_;
  Exemplars exemplars_;
};

TEST_F(WrittenMetricsTest, OpenMetricsNamesUnitsAndTheEnd) {
  const std::string text = Written(MetricFormat::kOpenMetrics);
  // The family of a counter has no suffix; its samples have.
  EXPECT_THAT(text, HasSubstr("# TYPE wan_attempt_seconds counter\n"));
  EXPECT_THAT(text, HasSubstr("# UNIT wan_attempt_seconds seconds\n"));
  EXPECT_THAT(text, HasSubstr("wan_attempt_seconds_total{model=\"m\\\"\\\\\\n\",outcome="
                              "\"completed\"} 1234567.125\n"));
  EXPECT_THAT(text, HasSubstr("# UNIT wan_system_memory_total_bytes bytes\n"));
  EXPECT_THAT(text, HasSubstr("wan_system_memory_total_bytes 6e+10\n"));
  // Its row has no unit.
  EXPECT_THAT(text, Not(HasSubstr("# UNIT wan_device_lost")));
  EXPECT_TRUE(text.ends_with("\n# EOF\n"));
}

TEST_F(WrittenMetricsTest, TheTextFormatHasNothingOfOpenMetrics) {
  exemplars_.Note("wan_job_seconds", {{"model", "m"}}, bounds_,
                  {1.5, absl::UnixEpoch(), "jobs/1", ""});
  const std::string text = Written(MetricFormat::kText);
  EXPECT_THAT(text, HasSubstr("# TYPE wan_attempt_seconds_total counter\n"));
  for (const char* const word : {"UNIT", "EOF", "jobs/1"}) EXPECT_THAT(text, Not(HasSubstr(word)));
  const auto parsed = support::PrometheusText::Parse(text);
  ASSERT_TRUE(parsed.ok()) << parsed.status() << "\n" << text;
  EXPECT_EQ(parsed->Value("wan_job_seconds_count", {{"model", "m"}}), 4);
  EXPECT_EQ(parsed->Value("wan_job_seconds_sum", {{"model", "m"}}), 2'000'002.75);
}

// A scraper that changes the format goes on with the same series.
TEST_F(WrittenMetricsTest, BothFormatsHaveTheSameSeries) {
  const auto series_of = [](const std::string& text) {
    std::multiset<std::string> series;
    size_t begin = 0;
    for (size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n', begin)) {
      if (text[begin] != '#') series.insert(text.substr(begin, end - begin));
      begin = end + 1;
    }
    return series;
  };
  const std::multiset<std::string> series = series_of(Written(MetricFormat::kText));
  EXPECT_EQ(series, series_of(Written(MetricFormat::kOpenMetrics)));
  EXPECT_TRUE(series.contains("wan_job_seconds_bucket{model=\"m\",le=\"1.0\"} 2"));
  EXPECT_TRUE(series.contains("wan_job_seconds_bucket{model=\"m\",le=\"1e+06\"} 3"));
  EXPECT_TRUE(series.contains("wan_job_seconds_bucket{model=\"m\",le=\"+Inf\"} 4"));
}

TEST_F(WrittenMetricsTest, ABucketShowsItsLatestExemplar) {
  const absl::Time time = absl::UnixEpoch() + absl::Milliseconds(1'700'000'000'250);
  const auto note = [&](double value, const char* job, const char* trace) {
    exemplars_.Note("wan_job_seconds", {{"model", "m"}}, bounds_, {value, time, job, trace});
  };
  note(0.25, "jobs/0", "");
  note(0.5, "jobs/1", "4bf92f3577b34da6a3ce929d0e0e4736");  // the bound belongs to its bucket
  note(2e6, "jobs/2", "");
  const std::string text = Written(MetricFormat::kOpenMetrics);
  EXPECT_THAT(text, HasSubstr("wan_job_seconds_bucket{model=\"m\",le=\"0.5\"} 1 # {job=\"jobs/1\","
                              "trace_id=\"4bf92f3577b34da6a3ce929d0e0e4736\"} 0.5 "
                              "1700000000.250\n"));
  EXPECT_THAT(text, HasSubstr("le=\"1.0\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("le=\"+Inf\"} 4 # {job=\"jobs/2\"} 2e+06 1700000000.250\n"));
  EXPECT_THAT(text, Not(HasSubstr("jobs/0")));
}

// OpenMetrics adds suffixes to a family's name, and no other family may have the result. A counter
// x_total is the family x there, so that a gauge x would be the same family.
TEST(CatalogNamesTest, NoTwoFamiliesAreOneInOpenMetrics) {
  std::set<std::string> taken;
  for (const MetricSection& section : MetricSections()) {
    for (const MetricRow& row : section.rows) {
      std::string name(row.name);
      std::vector<const char*> suffixes = {""};
      if (row.type == MetricType::kCounter) {
        ASSERT_TRUE(name.ends_with("_total")) << name;
        name.resize(name.size() - std::string_view("_total").size());
        suffixes = {"", "_total", "_created"};
      } else if (row.type == MetricType::kHistogram) {
        suffixes = {"", "_bucket", "_count", "_sum", "_created"};
      }
      for (const char* const suffix : suffixes) {
        EXPECT_TRUE(taken.insert(name + suffix).second) << name << suffix;
      }
    }
  }
}

}  // namespace
}  // namespace wan::server
