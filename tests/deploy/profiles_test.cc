// The profiles of cards (deploy/profiles) against the planner: every video of the table has a plan
// that keeps to the card, what is refused says what fits and that does fit, and the tables of
// docs/operate/hardware.md are what the planner says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "engine/inspect/memory_report.h"
#include "server/config/complete_config.h"
#include "server/config/yaml_config.h"

namespace wan {
namespace {

using Json = nlohmann::ordered_json;

struct Card {
  const char* profile;
  const char* name;
  double marketed_gib;  // no card has more than its name says
};
constexpr std::array kCards = {
    Card{"h200-141", "H200 141 GB", 141},    Card{"h100-80", "H100 80 GB", 80},
    Card{"a100-80", "A100 80 GB", 80},       Card{"a6000-48", "RTX A6000 48 GB", 48},
    Card{"l40s-48", "L40S 48 GB", 48},       Card{"a100-40", "A100 40 GB", 40},
    Card{"rtx4090-24", "RTX 4090 24 GB", 24}};

struct Row {
  const char* model;
  std::vector<VideoShape> shapes;
};
// What every card of the table must run.
const std::vector<Row>& Table() {
  static const std::vector<Row> rows = {
      {"ti2v-5b", {{1280, 704, 121}, {1280, 704, 161}}},
      {"t2v-a14b", {{832, 480, 81}, {1280, 720, 81}}},
      {"i2v-a14b", {{832, 480, 81}, {1280, 720, 81}}},
  };
  return rows;
}
// Ever larger ones beyond the table; each card refuses one of them first.
const std::vector<Row>& Beyond() {
  static const std::vector<Row> rows = {
      {"ti2v-5b", {{1920, 1088, 241}, {2560, 1408, 481}, {3840, 2176, 961}, {4096, 4096, 4093}}},
      {"t2v-a14b", {{1920, 1088, 161}, {2560, 1440, 161}, {3840, 2176, 241}, {4096, 4096, 4093}}},
  };
  return rows;
}

std::string ReadFile(const std::string& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file.good()) << path;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

server::ServerConfig ReadProfile(const std::string& name) {
  const std::string path = absl::StrCat(WAN_PROFILES "/", name, ".yaml");
  server::ServerConfig config;
  config.data_dir = "/data";
  absl::Status status = server::ApplyYaml(ReadFile(path), path, config);
  status.Update(server::Complete(config));
  EXPECT_TRUE(status.ok()) << status;
  return config;
}

Json Plan(const server::ServerConfig& config, const std::string& model,
          const std::vector<VideoShape>& shapes, std::optional<Quality> quality = std::nullopt) {
  const auto report = MemoryReport({.path = "synthetic:" + model,
                                    .device_memory_limit = config.engine.device_memory_limit,
                                    .residency = config.engine.residency,
                                    .eight_bit_weights = config.engine.eight_bit_weights,
                                    .shapes = shapes,
                                    .quality = quality});
  EXPECT_TRUE(report.ok()) << report.status();
  return report.ok() ? *report : Json::object();
}

std::string GiB(const Json& bytes) {
  return absl::StrFormat("%.1f", bytes.get<double>() / (1 << 30));
}

// The text between two marks of the page.
std::string Section(const std::string& page, const std::string& name) {
  const std::string begin = absl::StrCat("<!-- ", name, ": begin -->\n");
  const std::string end = absl::StrCat("<!-- ", name, ": end -->\n");
  const size_t from = page.find(begin);
  const size_t to = page.find(end);
  if (from == std::string::npos || to == std::string::npos) return "no section " + name;
  return page.substr(from + begin.size(), to - from - begin.size());
}

TEST(ProfilesTest, EveryCardHasOneAndKeepsToItsMemory) {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(WAN_PROFILES)) {
    files.push_back(entry.path().stem());
  }
  std::vector<std::string> expected;
  for (const Card& card : kCards) expected.push_back(card.profile);
  EXPECT_THAT(files, testing::UnorderedElementsAreArray(expected));
  for (const Card& card : kCards) {
    const server::ServerConfig config = ReadProfile(card.profile);
    EXPECT_THAT(config.devices, testing::ElementsAre("cuda:0")) << card.profile;
    EXPECT_EQ(config.engine.dtype, "bf16") << card.profile;
    const double gib = static_cast<double>(config.engine.device_memory_limit) / (1 << 30);
    EXPECT_LT(gib, card.marketed_gib) << card.profile;
    EXPECT_GT(gib, 0.9 * card.marketed_gib) << card.profile;
  }
}

TEST(ProfilesTest, EveryVideoOfTheTableFitsEveryCard) {
  for (const Card& card : kCards) {
    const server::ServerConfig config = ReadProfile(card.profile);
    for (const Row& row : Table()) {
      const Json report = Plan(config, row.model, row.shapes);
      for (const Json& video : report["videos"]) {
        SCOPED_TRACE(
            absl::StrCat(card.profile, " ", row.model, " ", video["shape"].get<std::string>()));
        ASSERT_TRUE(video["fits"].get<bool>()) << video.dump(2);
        EXPECT_EQ(video["decode_tiles"], "1x1");
        const auto peak = video["peak_bytes"].get<uint64_t>();
        EXPECT_LE(peak, report["job_memory"].get<uint64_t>());
        EXPECT_LT(report["job_memory"].get<uint64_t>(), config.engine.device_memory_limit);
        uint64_t largest = 0;
        for (const Json& stage : video["stages"]) {
          largest = std::max(largest, stage["weight_bytes"].get<uint64_t>() +
                                          stage["activation_bytes"].get<uint64_t>());
        }
        EXPECT_EQ(largest, peak);
      }
    }
  }
}

// The page says so in a sentence, since the rows of its table would all be alike.
TEST(ProfilesTest, TheSmallestModelIsResidentOnEveryCardAndFitsEightGigabytes) {
  constexpr char kModel[] = "wan2.1-t2v-1.3b";
  const YAML::Node table = YAML::LoadFile(WAN_CHART_MEMORY);
  for (const Card& card : kCards) {
    server::ServerConfig config = ReadProfile(card.profile);
    const Json video = Plan(config, kModel, {{832, 480, 81}})["videos"][0];
    for (const auto& [component, policy] : video["policies"].items()) {
      EXPECT_EQ(policy, "resident") << card.profile << " " << component;
    }
    EXPECT_EQ(GiB(video["peak_bytes"]), "19.7") << card.profile;
    EXPECT_EQ(table[card.profile][kModel].as<int>(), table[card.profile]["none"].as<int>());
    // CUDA reports 7.6 GiB or more for a card of 8 GB.
    config.engine.device_memory_limit = uint64_t{15} << 29;
    const Json small = Plan(config, kModel, {{832, 480, 81}})["videos"][0];
    EXPECT_TRUE(small["fits"].get<bool>()) << small.dump(2);
    EXPECT_EQ(small["decode_tiles"], "1x1");
    EXPECT_EQ(GiB(small["peak_bytes"]), "6.3");
  }
}

// Plans what a refusal says would fit; returns it as text.
std::string CheckAdvice(const server::ServerConfig& config, const std::string& model,
                        const VideoShape& refused, const std::string& message) {
  std::vector<std::string> advice;
  VideoShape shorter = refused;
  const size_t frames = message.find("At this size ");
  if (frames != std::string::npos &&
      std::sscanf(message.c_str() + frames, "At this size at most %d frame", &shorter.num_frames) ==
          1) {
    EXPECT_TRUE(Plan(config, model, {shorter})["fits"].get<bool>()) << message;
    advice.push_back(absl::StrCat(shorter.num_frames, " frames"));
    shorter.num_frames += 4;
    EXPECT_FALSE(Plan(config, model, {shorter})["fits"].get<bool>()) << message;
  }
  VideoShape smaller = refused;
  const size_t size = message.find("With this many frames ");
  if (size != std::string::npos &&
      std::sscanf(message.c_str() + size, "With this many frames at most %dx%d fits.",
                  &smaller.width, &smaller.height) == 2) {
    EXPECT_TRUE(Plan(config, model, {smaller})["fits"].get<bool>()) << message;
    advice.push_back(absl::StrCat(smaller.width, "x", smaller.height));
  }
  EXPECT_FALSE(advice.empty()) << message;
  std::string text;
  for (const std::string& part : advice) absl::StrAppend(&text, text.empty() ? "" : " or ", part);
  return text;
}

// A table with a row for each card; neighbours whose cells are equal share one.
std::string CardTable(const std::vector<std::string>& heads,
                      const std::function<std::vector<std::string>(server::ServerConfig)>& cells) {
  std::string table = absl::StrCat("| card | ", absl::StrJoin(heads, " | "), " |\n|");
  for (size_t i = 0; i <= heads.size(); ++i) table += " --- |";
  table += "\n";
  std::string names;
  std::string row;
  for (const Card& card : kCards) {
    std::string next = absl::StrJoin(cells(ReadProfile(card.profile)), " | ");
    if (!names.empty() && next != row) {
      absl::StrAppend(&table, "| ", names, " | ", row, " |\n");
      names.clear();
    }
    absl::StrAppend(&names, names.empty() ? "" : ", ", card.name);
    row = std::move(next);
  }
  absl::StrAppend(&table, "| ", names, " | ", row, " |\n");
  return table;
}

std::string RefusalTable() {
  std::vector<std::string> heads;
  for (const Row& row : Beyond()) {
    heads.push_back(absl::StrCat(row.model, ": refused"));
    heads.emplace_back("fits instead");
  }
  return CardTable(heads, [](const server::ServerConfig& config) {
    std::vector<std::string> cells;
    for (const Row& row : Beyond()) {
      const Json report = Plan(config, row.model, row.shapes);
      for (size_t i = 0; i < row.shapes.size(); ++i) {
        const Json& video = report["videos"][i];
        if (video["fits"].get<bool>()) continue;
        cells.push_back(video["shape"].get<std::string>());
        cells.push_back(
            CheckAdvice(config, row.model, row.shapes[i], video["message"].get<std::string>()));
        break;
      }
    }
    return cells;
  });
}

// What the page's tables show of each card; it says how much more the other videos of Table() need.
const std::vector<Row>& Shown() {
  static const std::vector<Row> rows = {{"ti2v-5b", {{1280, 704, 121}}},
                                        {"t2v-a14b", {{832, 480, 81}, {1280, 720, 81}}}};
  return rows;
}

constexpr EightBitWeights kNoEightBits{};
constexpr EightBitWeights kAllEightBits{.transformers = true, .text_encoder = true};

// The peak of each video, and the policies of the components that are not resident. With
// `eight_bit_weights` of both kinds the videos are of quality high.
std::string PolicyTable(const EightBitWeights& eight_bit_weights) {
  std::vector<std::string> heads;
  for (const Row& row : Shown()) {
    for (const VideoShape& shape : row.shapes) {
      heads.push_back(
          absl::StrFormat("%s %dx%dx%d", row.model, shape.width, shape.height, shape.num_frames));
    }
  }
  return CardTable(heads, [&](server::ServerConfig config) {
    config.engine.eight_bit_weights = eight_bit_weights;
    std::vector<std::string> cells;
    for (const Row& row : Shown()) {
      const Json report = Plan(config, row.model, row.shapes);
      for (const Json& video : report["videos"]) {
        std::string cell = GiB(video["peak_bytes"]);
        const char* separator = ": ";
        for (const char* const component :
             {"text_encoder", "transformer", "transformer_2", "vae"}) {
          const std::string policy = video["policies"].value(component, std::string("resident"));
          if (policy == "resident") continue;
          absl::StrAppend(&cell, separator, component, " ", policy);
          separator = ", ";
        }
        cells.push_back(std::move(cell));
      }
    }
    return cells;
  });
}

// The policies of a video's components, in no order: of two experts either may move.
std::multiset<std::string> PoliciesOf(const Json& video) {
  std::multiset<std::string> policies;
  for (const auto& [component, policy] : video["policies"].items()) {
    policies.insert(policy.get<std::string>());
  }
  return policies;
}

// Expects that `other` needs up to `most_gib` more than `shown`, and has as many components at
// each place.
void ExpectAlike(const Json& shown, const Json& other, double most_gib) {
  EXPECT_EQ(PoliciesOf(shown), PoliciesOf(other)) << other.dump(2);
  const double more =
      (other["peak_bytes"].get<double>() - shown["peak_bytes"].get<double>()) / (1 << 30);
  EXPECT_GE(more, 0);
  EXPECT_LE(more, most_gib);
}

TEST(ProfilesTest, VideosThatThePageDoesNotShowNeedHardlyMore) {
  for (const Card& card : kCards) {
    for (const EightBitWeights& weights : {kNoEightBits, kAllEightBits}) {
      SCOPED_TRACE(absl::StrCat(card.profile, weights.transformers ? ", 8 bits" : ""));
      server::ServerConfig config = ReadProfile(card.profile);
      config.engine.eight_bit_weights = weights;
      std::vector<Json> videos;
      for (const Row& row : Table())
        videos.push_back(Plan(config, row.model, row.shapes)["videos"]);
      ExpectAlike(videos[0][0], videos[0][1], 0.6);  // 161 frames of TI2V-5B beside 121
      ExpectAlike(videos[1][0], videos[2][0], 0.3);  // I2V-A14B beside T2V-A14B
      ExpectAlike(videos[1][1], videos[2][1], 0.3);
    }
  }
}

TEST(ProfilesTest, HighNeedsHardlyMoreAndFastKeepsWhatBlocksHaveAdded) {
  for (const Card& card : kCards) {
    const server::ServerConfig config = ReadProfile(card.profile);
    for (const Row& row : Table()) {
      SCOPED_TRACE(absl::StrCat(card.profile, " ", row.model));
      const auto videos_of = [&](Quality quality) {
        return Plan(config, row.model, row.shapes, quality)["videos"];
      };
      const Json exact = videos_of(Quality::kExact);
      const Json high = videos_of(Quality::kHigh);
      const Json fast = videos_of(Quality::kFast);
      for (size_t i = 0; i < row.shapes.size(); ++i) {
        ExpectAlike(exact[i], high[i], 0.4);
        ExpectAlike(exact[i], fast[i], 3.4);
      }
    }
  }
}

// The chart (deploy/helm/wanserve) gives a pod the host memory that its models need on the card.
TEST(ProfilesTest, TheChartHasThePlannersHostMemory) {
  constexpr int kProcessGiB = 12;
  const YAML::Node table = YAML::LoadFile(WAN_CHART_MEMORY);
  for (const Card& card : kCards) {
    const server::ServerConfig config = ReadProfile(card.profile);
    const YAML::Node row = table[card.profile];
    int largest = 0;
    for (const Row& model : Table()) {
      const Json report = Plan(config, model.model, model.shapes);
      uint64_t host_bytes = 0;
      for (const Json& video : report["videos"]) {
        host_bytes = std::max(host_bytes, video["host_bytes"].get<uint64_t>());
      }
      const int gib = static_cast<int>((host_bytes + (1 << 30) - 1) >> 30) + kProcessGiB;
      EXPECT_EQ(row[model.model].as<int>(), gib) << card.profile << " " << model.model;
      largest = std::max(largest, gib);
    }
    EXPECT_EQ(row["none"].as<int>(), kProcessGiB) << card.profile;
    EXPECT_EQ(row["unknown"].as<int>(), largest) << card.profile;
  }
}

TEST(ProfilesTest, ThePageHasThePlannersPolicies) {
  const std::string page = ReadFile(WAN_HARDWARE_PAGE);
  EXPECT_EQ(Section(page, "policies"), PolicyTable(kNoEightBits));
  EXPECT_EQ(Section(page, "policies in 8 bits"), PolicyTable(kAllEightBits));
}

TEST(ProfilesTest, ThePageHasThePlannersRefusalsAndWhatTheyAdviseFits) {
  EXPECT_EQ(Section(ReadFile(WAN_HARDWARE_PAGE), "refusals"), RefusalTable());
}

}  // namespace
}  // namespace wan
