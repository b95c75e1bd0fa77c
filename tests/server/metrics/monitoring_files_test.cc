// The rules, alerts and dashboards of deploy/: they read metrics that exist, Prometheus accepts
// them, every alert fires when it should and only then, and its runbook has a section.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>

#include "server/metrics/catalog.h"

namespace wan::server {
namespace {

const std::filesystem::path kRepository = WAN_REPOSITORY;
const std::filesystem::path kRules = kRepository / "deploy" / "prometheus";

std::string TextOf(const std::filesystem::path& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file.is_open()) << path;
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// What the expression matches in the text, each once.
std::set<std::string> AllOf(const std::string& text, const char* expression) {
  std::set<std::string> found;
  const std::regex pattern(expression);
  for (auto match = std::sregex_iterator(text.begin(), text.end(), pattern);
       match != std::sregex_iterator(); ++match) {
    found.insert(match->str(match->size() - 1));
  }
  return found;
}

std::set<std::string> Cataloged() {
  std::set<std::string> names;
  for (const MetricSection& section : MetricSections()) {
    for (const MetricRow& row : section.rows) {
      names.insert(std::string(row.name));
      if (row.type != MetricType::kHistogram) continue;
      for (const char* const suffix : {"_bucket", "_sum", "_count"}) {
        names.insert(std::string(row.name) + suffix);
      }
    }
  }
  return names;
}

TEST(MonitoringFilesTest, QueriesReadMetricsThatExist) {
  const std::set<std::string> cataloged = Cataloged();
  const std::set<std::string> recorded =
      AllOf(TextOf(kRules / "recording.yaml"), "record: (wan:[a-z0-9_:]+)");
  EXPECT_FALSE(recorded.empty());
  for (const char* const file :
       {"deploy/prometheus/recording.yaml", "deploy/prometheus/alerts.yaml",
        "deploy/grafana/service.json", "deploy/grafana/gpu.json", "deploy/grafana/steps.json",
        "docs/metrics.md", "docs/runbook.md", "docs/operations.md"}) {
    const std::string text = TextOf(kRepository / file);
    // A name that ends with an underscore stands for all that begin so.
    for (const std::string& name : AllOf(text, "\\b((?:wan|process)_[a-z_]*[a-z])\\b")) {
      EXPECT_TRUE(cataloged.contains(name)) << file << " reads " << name;
    }
    for (const std::string& name : AllOf(text, "\\b(wan:[a-z0-9_:]+)")) {
      EXPECT_TRUE(recorded.contains(name)) << file << " reads " << name;
    }
  }
}

TEST(MonitoringFilesTest, EveryAlertHasASectionOfTheRunbookAndATest) {
  const std::string alerts = TextOf(kRules / "alerts.yaml");
  const std::set<std::string> names = AllOf(alerts, "alert: (\\w+)");
  EXPECT_GE(names.size(), 9u);
  const std::set<std::string> sections =
      AllOf(TextOf(kRepository / "docs" / "runbook.md"), "\n## (\\w+)\n");
  EXPECT_EQ(sections, names);
  const std::set<std::string> links = AllOf(alerts, "runbook: docs/runbook.md#(\\w+)\n");
  const std::string tests = TextOf(kRules / "alerts_test.yaml");
  for (const std::string& name : names) {
    std::string anchor = name;
    std::transform(anchor.begin(), anchor.end(), anchor.begin(),
                   [](unsigned char letter) { return std::tolower(letter); });
    EXPECT_TRUE(links.contains(anchor)) << name;
    // Once firing and once not.
    const std::string quiet = "alertname: " + name + "\n        exp_alerts: []";
    const std::string fires = "alertname: " + name + "\n        exp_alerts:\n";
    EXPECT_NE(tests.find(quiet), std::string::npos) << name;
    EXPECT_NE(tests.find(fires), std::string::npos) << name;
  }
  EXPECT_EQ(links.size(), names.size());
}

TEST(MonitoringFilesTest, PrometheusAcceptsTheFilesAndTheAlertsFireWhenTheyShould) {
  const std::string promtool = WAN_PROMTOOL;
  if (promtool.find("NOTFOUND") != std::string::npos) {
    GTEST_SKIP() << "promtool (package prometheus) is not installed";
  }
  for (const char* const command :
       {"check rules recording.yaml alerts.yaml", "check config prometheus.yaml",
        "test rules alerts_test.yaml"}) {
    const std::string line = "cd '" + kRules.string() + "' && " + promtool + " " + command;
    EXPECT_EQ(std::system(line.c_str()), 0) << line;
  }
}

}  // namespace
}  // namespace wan::server
