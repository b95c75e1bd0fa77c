#include "benchmarks/ceilings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "benchmarks/card_watch.h"

namespace wan {
namespace {

using client::reports::ReadCeilings;
using testing::HasSubstr;

Ceilings Made() {
  Ceilings ceilings;
  ceilings.device = "NVIDIA H200";
  ceilings.software = "LibTorch 2.11.0";
  ceilings.measured_at = "2026-11-22T14:00:00Z";
  ceilings.seconds_each = 1;
  ceilings.products = {{"bf16", 700e12}, {"tf32", 350e12}};
  ceilings.attention = {{"bf16", 600e12}};
  ceilings.memory = 4e12;
  ceilings.upload = 50e9;
  return ceilings;
}

class CeilingsFile : public testing::Test {
 protected:
  void Write(const std::string& text) { std::ofstream(path_) << text; }
  ~CeilingsFile() override { std::filesystem::remove(path_); }
  const std::string path_ =
      testing::TempDir() + testing::UnitTest::GetInstance()->current_test_info()->name() + ".json";
};

TEST(CeilingsTest, ProductsAndAttentionTakeTheirTimesOneAfterTheOther) {
  EXPECT_DOUBLE_EQ(*FloorSeconds(Made(), {.product_flop = 700e12, .attention_flop = 1200e12}), 3);
  EXPECT_DOUBLE_EQ(*FloorSeconds(Made(), {.product_flop = 700e12, .precision = "tf32"}), 2);
}

TEST(CeilingsTest, TheSlowestOfComputingAndMovingDecides) {
  EXPECT_DOUBLE_EQ(*FloorSeconds(Made(), {.product_flop = 700e12, .bytes = 8e12}), 2);
  EXPECT_DOUBLE_EQ(*FloorSeconds(Made(), {.product_flop = 700e12, .bytes = 2e12}), 1);
  EXPECT_DOUBLE_EQ(*FloorSeconds(Made(), {.upload_bytes = 100e9}), 2);
}

TEST(CeilingsTest, WithoutARateThereIsNoFloor) {
  EXPECT_EQ(FloorSeconds(Made(), {.product_flop = 1, .precision = "fp8"}), std::nullopt);
  EXPECT_EQ(FloorSeconds(Made(), {.product_flop = 1, .precision = kMixed}), std::nullopt);
  EXPECT_EQ(FloorSeconds(Made(), {.download_bytes = 1}), std::nullopt);
  EXPECT_EQ(FloorSeconds(Made(), {}), std::nullopt);
}

TEST_F(CeilingsFile, WhatIsWrittenIsRead) {
  ASSERT_TRUE(WriteCeilings(path_, Made(), {{.name = "a row"}}).ok());
  const auto read = ReadCeilings(path_);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->device, "NVIDIA H200");
  EXPECT_EQ(read->software, "LibTorch 2.11.0");
  EXPECT_EQ(read->measured_at, "2026-11-22T14:00:00Z");
  EXPECT_EQ(read->seconds_each, 1);
  EXPECT_EQ(read->products, Made().products);
  EXPECT_EQ(read->attention, Made().attention);
  EXPECT_EQ(read->memory, 4e12);
  EXPECT_EQ(read->upload, 50e9);
  EXPECT_EQ(read->download, 0);
}

TEST_F(CeilingsFile, AnErrorNamesTheFileAndTheField) {
  EXPECT_THAT(ReadCeilings(path_).status().ToString(), HasSubstr("wan_bench ceilings --output"));
  Write("[1]");
  EXPECT_THAT(ReadCeilings(path_).status().ToString(), HasSubstr("it is not a JSON object"));
  Write(R"({"format": "wanserve-ceilings", "version": 2})");
  EXPECT_THAT(ReadCeilings(path_).status().ToString(), HasSubstr("of version 1"));
  Write(R"({"format": "wanserve-ceilings", "version": 1, "device": "x", "software": 3})");
  EXPECT_THAT(ReadCeilings(path_).status().ToString(), HasSubstr("its field software"));
}

class FakeCard final : public NvmlDevice {
 public:
  GpuCounters Read() const override {
    GpuCounters counters;
    counters.sm_clock_mhz = 1500;
    counters.power_watts = 700;
    counters.throttle_reasons = {"power cap"};
    return counters;
  }
  std::optional<double> ReadEnergyJoules() const override { return std::nullopt; }
  GpuFacts Describe() const override { return {}; }
  std::optional<int> CountProcesses() const override { return std::nullopt; }
  std::unique_ptr<GpmSample> TakeGpmSample() const override { return nullptr; }
  GpmMetrics Between(const GpmSample&, const GpmSample&) const override { return {}; }
};

TEST(CardWatchTest, TheShortestMeasurementHasOneReading) {
  const FakeCard card;
  CardWatch watch(&card);
  const CardState state = watch.Finish();
  EXPECT_EQ(state.sm_clock_mhz, 1500);
  EXPECT_EQ(state.power_watts, 700);
  EXPECT_EQ(state.temperature_celsius, std::nullopt);
  EXPECT_EQ(state.throttle_reasons, std::vector<std::string>{"power cap"});
}

TEST(CardWatchTest, WithoutACardEverythingIsAbsent) {
  const CardState state = CardWatch(nullptr).Finish();
  EXPECT_EQ(state.sm_clock_mhz, std::nullopt);
  EXPECT_EQ(state.throttle_reasons, std::nullopt);
}

}  // namespace
}  // namespace wan
