#include "engine/monitor/gpu_sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "tests/engine/monitor/scripted_nvml.h"
#include "tests/fakes/fake_clock.h"

namespace wan {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// A reading of the trace, and the metrics of the time since the reading before.
struct Row {
  int64_t nanos = 0;
  GpuCounters counters;
  int processes = 0;
  GpmMetrics gpm;
  std::optional<double> energy_joules = {};
};

std::vector<Row> ReadTrace(const std::string& file) {
  std::ifstream stream(std::string(WAN_MONITOR_DATA_DIR) + "/" + file);
  std::vector<std::string> names;
  std::vector<Row> rows;
  for (std::string line; std::getline(stream, line);) {
    if (line.empty() || line.front() == '#') continue;
    const std::vector<std::string> cells = absl::StrSplit(line, ',');
    if (names.empty()) {
      names = cells;
      continue;
    }
    std::map<std::string, double> figures;
    Row row;
    for (size_t i = 0; i < names.size(); ++i) {
      double value = 0;
      if (absl::SimpleAtod(cells[i], &value)) figures[names[i]] = value;
      if (names[i] == "throttle_reasons") {
        row.counters.throttle_reasons =
            std::vector<std::string>(absl::StrSplit(cells[i], '|', absl::SkipEmpty()));
      }
    }
    row.nanos = static_cast<int64_t>(figures.at("nanos"));
    row.counters.power_watts = figures.at("power_watts");
    row.energy_joules = figures.at("energy_joules");
    row.counters.temperature_celsius = figures.at("temperature_celsius");
    row.counters.sm_clock_mhz = figures.at("sm_clock_mhz");
    row.counters.memory_clock_mhz = figures.at("memory_clock_mhz");
    row.counters.utilization_percent = figures.at("utilization_percent");
    row.counters.memory_used_bytes = static_cast<uint64_t>(figures.at("memory_used_bytes"));
    row.processes = static_cast<int>(figures.at("processes"));
    // A card does not tell each of these at any time.
    const auto maybe = [&](const std::string& name) -> std::optional<double> {
      const auto found = figures.find(name);
      if (found == figures.end()) return std::nullopt;
      return found->second;
    };
    row.gpm = {maybe("sm_activity_percent"), maybe("sm_occupancy_percent"),
               maybe("tensor_activity_percent"), maybe("dram_bandwidth_percent")};
    rows.push_back(std::move(row));
  }
  return rows;
}

// The sampler, a card and the time.
class GpuSamplerTest : public ::testing::Test {
 protected:
  void Make(bool has_gpm) {
    auto owned = std::make_unique<ScriptedNvml>(has_gpm);
    nvml_ = owned.get();
    sampler_ = std::make_unique<GpuSampler>(std::move(owned), clock_);
  }

  // Lets the time of a row come, and takes the sample.
  void Play(const Row& row) {
    const int64_t passed = row.nanos - clock_.MonotonicNanos();
    nvml_->Pass(row.gpm, static_cast<double>(passed) * 1e-9);
    clock_.Advance(absl::Nanoseconds(passed));
    nvml_->Set(row.counters, row.processes, row.energy_joules);
    sampler_->Tick();
  }

  // Ticks so often, every 50 ms, with these counters.
  void TickTimes(int count, const GpuCounters& counters, const GpmMetrics& gpm = {}) {
    for (int i = 0; i < count; ++i) {
      Play({clock_.MonotonicNanos() + 50'000'000, counters, 1, gpm});
    }
  }

  fakes::FakeClock clock_;
  ScriptedNvml* nvml_ = nullptr;
  std::unique_ptr<GpuSampler> sampler_;
};

// What a stretch of the trace amounts to, added up from its rows.
struct Expected {
  double seconds = 0, joules = 0, clock = 0, throttled = 0;
  double sm = 0, tensor = 0, dram = 0;
  double peak = 0, least_clock = 1e9, hottest = 0;
  int processes = 0;
  std::set<std::string> reasons;
};

Expected AddUp(const std::vector<Row>& rows, size_t from, size_t to) {
  Expected sum;
  for (size_t i = from + 1; i <= to; ++i) {
    const double dt = static_cast<double>(rows[i].nanos - rows[i - 1].nanos) * 1e-9;
    const GpuCounters& counters = rows[i].counters;
    sum.seconds += dt;
    sum.clock += *counters.sm_clock_mhz * dt;
    sum.sm += rows[i].gpm.sm_activity_percent.value_or(0) * dt;
    sum.tensor += rows[i].gpm.tensor_activity_percent.value_or(0) * dt;
    sum.dram += rows[i].gpm.dram_bandwidth_percent.value_or(0) * dt;
    if (!counters.throttle_reasons->empty()) sum.throttled += dt;
    sum.peak = std::max(sum.peak, *counters.power_watts);
    sum.least_clock = std::min(sum.least_clock, *counters.sm_clock_mhz);
    sum.hottest = std::max(sum.hottest, *counters.temperature_celsius);
    sum.reasons.insert(counters.throttle_reasons->begin(), counters.throttle_reasons->end());
  }
  sum.joules = *rows[to].energy_joules - *rows[from].energy_joules;
  return sum;
}

// Replays a trace, and compares the figures of stretches of it, each from one row to another, with
// what its rows add up to.
class GpuTraceTest : public GpuSamplerTest {
 protected:
  void Replay(const std::vector<Row>& rows,
              const std::vector<std::pair<size_t, size_t>>& stretches) {
    Make(/*has_gpm=*/true);
    std::vector<std::unique_ptr<GpuSampler::Interval>> open(stretches.size());
    for (size_t i = 0; i < rows.size(); ++i) {
      Play(rows[i]);
      for (size_t k = 0; k < stretches.size(); ++k) {
        const auto [from, to] = stretches[k];
        if (i == from) open[k] = sampler_->Open();
        if (i != to) continue;
        SCOPED_TRACE(k);
        Compare(open[k]->Usage(), AddUp(rows, from, to));
        open[k].reset();
      }
    }
    const std::optional<GpuSampler::Now> end = sampler_->Newest();
    ASSERT_TRUE(end.has_value());
    const Expected all = AddUp(rows, 0, rows.size() - 1);
    EXPECT_NEAR(end->energy_joules.value_or(0), all.joules, 0.5 * all.peak);
    EXPECT_NEAR(end->throttled_seconds.value_or(0), all.throttled, 1e-6);
    EXPECT_NEAR(end->throttled_seconds_by_reason.at("power cap"), all.throttled, 1e-6);
    EXPECT_NEAR(end->sm_active_seconds.value_or(0), all.sm / 100, 0.2);
  }

  static void Compare(const GpuUsage& usage, const Expected& expected) {
    // The counter's readings lie half a second apart. So do the edges of what they cover.
    const double changes = 0.5 * (expected.peak - 75);
    EXPECT_NEAR(usage.energy_joules.value_or(0), expected.joules, changes);
    EXPECT_NEAR(usage.power_watts.value_or(0) * expected.seconds, usage.energy_joules.value_or(-1),
                1e-6);
    EXPECT_EQ(usage.power_peak_watts, expected.peak);
    EXPECT_NEAR(usage.sm_clock_mhz.value_or(0), expected.clock / expected.seconds, 0.01);
    EXPECT_EQ(usage.sm_clock_min_mhz, expected.least_clock);
    EXPECT_EQ(usage.temperature_peak_celsius, expected.hottest);
    EXPECT_NEAR(usage.throttled_seconds.value_or(-1), expected.throttled, 1e-6);
    EXPECT_THAT(usage.throttle_reasons, ::testing::ElementsAreArray(expected.reasons));
    // GPM's samples lie 100 ms apart: one may begin before the stretch or end behind it.
    const double edges = 100 * 0.2 / expected.seconds;
    EXPECT_NEAR(usage.sm_activity_percent.value_or(-1), expected.sm / expected.seconds, edges);
    EXPECT_NEAR(usage.tensor_activity_percent.value_or(-1), expected.tensor / expected.seconds,
                edges);
    EXPECT_NEAR(usage.dram_bandwidth_percent.value_or(-1), expected.dram / expected.seconds, edges);
    EXPECT_TRUE(usage.sm_occupancy_percent.has_value());
  }
};

TEST_F(GpuTraceTest, StretchesOfARecordedTraceHaveTheirOwnFigures) {
  const std::vector<Row> rows = ReadTrace("h200_trace.csv");
  ASSERT_EQ(rows.size(), 640u);
  // All; the busy part; its first second; the pause between two kinds of products; products in fp32
  // without a tensor core; copies.
  Replay(rows, {{0, 639}, {90, 490}, {92, 112}, {300, 330}, {382, 400}, {464, 488}});
  EXPECT_EQ(sampler_->Newest()->processes, 0);
}

TEST_F(GpuTraceTest, TheFirstSecondOfWorkHasThePowerThatTheCounterTells) {
  const std::vector<Row> rows = ReadTrace("h200_trace.csv");
  Make(/*has_gpm=*/true);
  for (size_t i = 0; i <= 92; ++i) Play(rows[i]);
  const auto second = sampler_->Open();
  double told = 0;
  for (size_t i = 93; i <= 112; ++i) {
    Play(rows[i]);
    told += *rows[i].counters.power_watts / 20;
  }
  EXPECT_NEAR(told, 364, 2) << "the driver's power is the mean of the second before";
  EXPECT_NEAR(AddUp(rows, 92, 112).joules, 668, 2);
  EXPECT_GT(second->Usage().power_watts.value_or(0), 550);
}

TEST_F(GpuTraceTest, StretchesOfAMadeTraceHaveTheirOwnFigures) {
  const std::vector<Row> rows = ReadTrace("made_trace.csv");
  ASSERT_GT(rows.size(), 300u);
  // Stretches that overlap, nest, and meet.
  Replay(rows, {{0, rows.size() - 1}, {60, 180}, {100, 110}, {180, 300}, {300, 330}, {10, 50}});
  // What no recorded trace has: a card that becomes too hot, and a second process.
  EXPECT_NEAR(sampler_->Newest()->throttled_seconds_by_reason.at("temperature"), 1.53, 0.02);
  EXPECT_EQ(sampler_->Newest()->processes, 2);
}

TEST_F(GpuSamplerTest, WithoutAnEnergyCounterPowerIsIntegrated) {
  Make(false);
  GpuCounters counters;
  counters.power_watts = 300;
  TickTimes(1, counters);
  const auto interval = sampler_->Open();
  TickTimes(10, counters);
  counters.power_watts = 500;
  TickTimes(10, counters);
  EXPECT_NEAR(interval->Usage().energy_joules.value_or(0), 0.5 * 300 + 0.5 * 500, 1e-6);
  EXPECT_NEAR(sampler_->Newest()->energy_joules.value_or(0), 400, 1e-6);
}

TEST_F(GpuSamplerTest, TheEnergyCounterIsReadTwiceASecond) {
  Make(false);
  GpuCounters counters;
  counters.power_watts = 300;  // which the counter contradicts
  double joules = 1000;
  const auto tick = [&](int times) {
    for (int i = 0; i < times; ++i) {
      Play({clock_.MonotonicNanos() + 50'000'000, counters, 1, {}, joules += 20});
    }
  };
  tick(1);
  const auto interval = sampler_->Open();
  tick(4);
  EXPECT_NEAR(interval->Usage().energy_joules.value_or(0), 0.2 * 300, 1e-6)
      << "the counter says nothing of so short a stretch";
  tick(36);
  EXPECT_EQ(nvml_->energy_reads(), 5);
  EXPECT_NEAR(interval->Usage().energy_joules.value_or(0), 40 * 20, 1e-6);
  EXPECT_NEAR(sampler_->Newest()->energy_joules.value_or(0), 40 * 20, 1e-6);
  tick(5);
  EXPECT_NEAR(interval->Usage().energy_joules.value_or(0), 45 * 20, 1e-6)
      << "the last quarter of a second counts as the rest did";
  EXPECT_NEAR(sampler_->LastSecond().energy_joules.value_or(0), 400, 1e-6);
}

TEST_F(GpuSamplerTest, AStretchThatBeginsBetweenTwoSamplesHasItsPartOfTheFirst) {
  Make(false);
  GpuCounters counters;
  counters.power_watts = 100;
  TickTimes(2, counters);
  clock_.Advance(absl::Milliseconds(30));
  const auto interval = sampler_->Open();
  counters.power_watts = 200;
  Play({clock_.MonotonicNanos() + 20'000'000, counters, 1, {}});
  counters.power_watts = 300;
  TickTimes(1, counters);
  // 20 ms of 200 W and 50 ms of 300 W.
  EXPECT_NEAR(interval->Usage().power_watts.value_or(0), (20 * 200 + 50 * 300) / 70.0, 1e-6);
}

TEST_F(GpuSamplerTest, WhatSamplesHardlyCoverIsUnknown) {
  Make(true);
  GpuCounters counters;
  counters.power_watts = 100;
  counters.throttle_reasons.emplace();
  TickTimes(4, counters, {50, 10, 10, 10});
  const auto interval = sampler_->Open();
  clock_.Advance(absl::Milliseconds(10));
  EXPECT_EQ(interval->Usage().power_watts, std::nullopt) << "no sample lies in it";
  EXPECT_EQ(interval->Usage().energy_joules, std::nullopt);
  EXPECT_EQ(interval->Usage().throttled_seconds, std::nullopt);
  Play({clock_.MonotonicNanos() + 40'000'000, counters, 1, {50, 10, 10, 10}});
  EXPECT_EQ(interval->Usage().power_watts, 100);
  EXPECT_EQ(interval->Usage().sm_activity_percent, std::nullopt) << "below 0.1 s";
  TickTimes(2, counters, {50, 10, 10, 10});
  EXPECT_NEAR(interval->Usage().sm_activity_percent.value_or(0), 50, 1e-6);
  EXPECT_THAT(interval->Usage().throttle_reasons, IsEmpty());
  EXPECT_EQ(interval->Usage().throttled_seconds, 0);
}

TEST_F(GpuSamplerTest, ReadersDoNotShortenEachOthersIntervals) {
  Make(false);
  GpuCounters counters;
  counters.utilization_percent = 0;
  TickTimes(1, counters);
  const auto slow = sampler_->Open();
  const auto quick = sampler_->Open();
  TickTimes(20, counters);
  quick->Restart();
  counters.utilization_percent = 100;
  TickTimes(20, counters);
  EXPECT_NEAR(quick->Usage().sm_activity_percent.value_or(0), 100, 1e-6);
  EXPECT_NEAR(slow->Usage().sm_activity_percent.value_or(0), 50, 1e-6);
  EXPECT_NEAR(sampler_->LastSecond().sm_activity_percent.value_or(0), 100, 1e-6);
  EXPECT_NEAR(sampler_->LastSecond().sm_activity_percent.value_or(0), 100, 1e-6);
}

TEST_F(GpuSamplerTest, OfACardThatTellsNothingNothingIsKnown) {
  Make(true);
  const auto interval = sampler_->Open();
  TickTimes(20, GpuCounters());
  const GpuUsage usage = interval->Usage();
  EXPECT_EQ(usage.power_watts, std::nullopt);
  EXPECT_EQ(usage.energy_joules, std::nullopt);
  EXPECT_EQ(usage.sm_clock_mhz, std::nullopt);
  EXPECT_EQ(usage.throttled_seconds, std::nullopt);
  EXPECT_EQ(sampler_->Newest()->energy_joules, std::nullopt);
}

TEST_F(GpuSamplerTest, AReadingThatIsOldDoesNotStandForNow) {
  Make(false);
  GpuCounters counters;
  counters.memory_used_bytes = 7;
  counters.power_watts = 100;
  TickTimes(3, counters);
  ASSERT_TRUE(sampler_->Newest().has_value());
  EXPECT_EQ(sampler_->Newest()->counters.memory_used_bytes, 7u);
  // The driver blocks: no tick ends any more.
  clock_.Advance(absl::Seconds(3));
  EXPECT_FALSE(sampler_->Newest().has_value());
  EXPECT_EQ(sampler_->LastSecond().power_watts, std::nullopt);
}

}  // namespace
}  // namespace wan
