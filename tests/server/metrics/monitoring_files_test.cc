// The rules, alerts and dashboards of deploy/: they read metrics that exist and tell servers apart,
// Prometheus accepts them, every alert fires when it should and only then, and its runbook has a
// section.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <string>
#include <vector>

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
        "docs/operate/metrics.md", "docs/operate/runbook.md", "docs/operate/operations.md"}) {
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

constexpr const char* kBoards[] = {"service", "gpu", "steps"};

nlohmann::json Board(const char* name) {
  return nlohmann::json::parse(
      TextOf(kRepository / "deploy" / "grafana" / (std::string(name) + ".json")));
}

// The panels of a dashboard but the headings of its rows.
std::vector<nlohmann::json> PanelsOf(const nlohmann::json& board) {
  std::vector<nlohmann::json> panels;
  for (const nlohmann::json& panel : board.at("panels")) {
    if (panel.at("type") != "row") panels.push_back(panel);
  }
  return panels;
}

// Every scrape adds `instance`; `pod` is there on Kubernetes alone. Without the first, the curves
// of two servers have one legend, or are one curve.
TEST(MonitoringFilesTest, DashboardsTellServersApartWithoutKubernetes) {
  const std::regex aggregation("\\b(sum|max|min|avg|histogram_quantile)\\b");
  for (const char* const name : kBoards) {
    const nlohmann::json board = Board(name);
    std::set<std::string> variables;
    for (const auto& variable : board.at("templating").at("list")) {
      variables.insert(variable.at("name"));
    }
    EXPECT_TRUE(variables.contains("instance")) << name;
    for (const auto& panel : PanelsOf(board)) {
      for (const auto& target : panel.at("targets")) {
        const std::string query = target.at("expr");
        const std::string legend = target.at("legendFormat");
        const std::string where = std::string(name) + ": " + query;
        EXPECT_EQ(AllOf(query, "(pod=~\"\\$pod\"(?!,instance=~\"\\$instance\"))"),
                  std::set<std::string>())
            << where;
        bool apart = !std::regex_search(query, aggregation);
        for (const std::string& labels : AllOf(query, "by \\(([^)]*)\\)")) {
          const bool of_instance = labels.find("instance") != std::string::npos;
          EXPECT_TRUE(of_instance || labels.find("pod") == std::string::npos) << where;
          apart = apart || of_instance;
        }
        if (panel.at("type") != "table") {
          EXPECT_EQ(legend.find("{{instance}}") != std::string::npos, apart) << where;
        }
      }
    }
  }
}

TEST(MonitoringFilesTest, TitlesOfPanelsSayWhatIsShown) {
  // At least two words, none of which needs the panel beside it.
  const std::regex good("(gRPC|[A-Z][A-Za-z]*[:,]?)( [A-Za-z0-9/]+[:,]?)+");
  for (const char* const name : kBoards) {
    const nlohmann::json board = Board(name);
    std::set<std::string> titles;
    for (const auto& panel : PanelsOf(board)) {
      const std::string title = panel.at("title");
      EXPECT_TRUE(titles.insert(title).second) << name << " has two panels '" << title << "'";
      EXPECT_TRUE(std::regex_match(title, good)) << name << ": '" << title << "'";
      for (const char* const vague : {"The rest", "What ", "By ", "Against "}) {
        EXPECT_FALSE(title.starts_with(vague)) << name << ": '" << title << "'";
      }
    }
  }
}

TEST(MonitoringFilesTest, DashboardsMarkRestartsAndListAlerts) {
  int lists = 0;
  for (const char* const name : kBoards) {
    const nlohmann::json board = Board(name);
    const nlohmann::json annotations =
        board.value("/annotations/list"_json_pointer, nlohmann::json::array());
    ASSERT_EQ(annotations.size(), 1u) << name;
    const std::string query = annotations[0].at("expr");
    EXPECT_NE(query.find("process_start_time_seconds"), std::string::npos) << name;
    for (const auto& panel : PanelsOf(board)) {
      const std::string first = panel.at("targets").at(0).at("expr");
      lists += first.starts_with("ALERTS{alertname=~\"Wanserve") ? 1 : 0;
    }
  }
  EXPECT_EQ(lists, 1);
}

TEST(MonitoringFilesTest, EveryAlertHasASectionOfTheRunbookAndATest) {
  const std::string alerts = TextOf(kRules / "alerts.yaml");
  const std::set<std::string> names = AllOf(alerts, "alert: (\\w+)");
  EXPECT_GE(names.size(), 9u);
  const std::set<std::string> sections =
      AllOf(TextOf(kRepository / "docs" / "operate" / "runbook.md"), "\n## (\\w+)\n");
  EXPECT_EQ(sections, names);
  const std::set<std::string> links =
      AllOf(alerts, "runbook_url: file:///usr/share/doc/wanserve/docs/operate/runbook.md#(\\w+)\n");
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
  // One of each for every alert.
  for (const char* const annotation :
       {"summary: \"[^\"]+\"\n", "description: \"[^\"]+\"\n", "severity: (warning|critical)\n"}) {
    const std::regex pattern(annotation);
    EXPECT_EQ(std::distance(std::sregex_iterator(alerts.begin(), alerts.end(), pattern),
                            std::sregex_iterator()),
              static_cast<std::ptrdiff_t>(names.size()))
        << annotation;
  }
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
