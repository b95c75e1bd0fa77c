#include "benchmarks/bench_row.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace wan {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

BenchRow Forward() {
  return {.name = "synthetic:ti2v-5b 1280x704x121 bf16",
          .timing = Timing{0.5, 0.4, 0.7, 6},
          .work = Work{.product_flop = 1e14, .attention_flop = 2e14},
          .card = {.sm_clock_mhz = 1550,
                   .power_watts = 691.5,
                   .temperature_celsius = 61,
                   .throttle_reasons = {{"power cap"}}},
          .figures = {{"tokens", int64_t{27280}}, {"right", true}, {"of", std::string("it")}},
          .command = "forward",
          .device = "NVIDIA H200",
          .ceiling_seconds = 0.4};
}

TEST(BenchRowTest, ALineOfJsonHasEveryField) {
  const json row = json::parse(ToJsonLine(Forward()));
  EXPECT_EQ(row["command"], "forward");
  EXPECT_EQ(row["name"], "synthetic:ti2v-5b 1280x704x121 bf16");
  EXPECT_EQ(row["device"], "NVIDIA H200");
  EXPECT_EQ(row["seconds"], 0.5);
  EXPECT_EQ(row["least_seconds"], 0.4);
  EXPECT_EQ(row["most_seconds"], 0.7);
  EXPECT_EQ(row["calls"], 6);
  EXPECT_EQ(row["flop_per_second"], 6e14);
  EXPECT_EQ(row["ceiling_seconds"], 0.4);
  EXPECT_EQ(row["ratio"], 1.25);
  EXPECT_EQ(row["sm_clock_mhz"], 1550);
  EXPECT_EQ(row["power_watts"], 691.5);
  EXPECT_EQ(row["temperature_celsius"], 61);
  EXPECT_EQ(row["throttle_reasons"], json::array({"power cap"}));
  EXPECT_EQ(row["figures"], json({{"tokens", 27280}, {"right", true}, {"of", "it"}}));
}

TEST(BenchRowTest, WhatWasNotMeasuredIsAbsent) {
  const json row = json::parse(ToJsonLine({.name = "x", .command = "memory", .device = "cpu"}));
  EXPECT_EQ(row, json({{"command", "memory"}, {"name", "x"}, {"device", "cpu"}}));
}

TEST(BenchRowTest, ARowOfTheTableHasAsManyCellsAsItsHeader) {
  const std::string header = TableHeader();
  const std::string line = header.substr(0, header.find('\n'));
  const std::string row = TableRow(Forward());
  EXPECT_EQ(std::count(row.begin(), row.end(), '|'), std::count(line.begin(), line.end(), '|'));
  EXPECT_THAT(row, HasSubstr("| 500.000 ms | 600.0 TFLOP/s | 1.250 | 1550 | 692 | power cap |"));
  EXPECT_THAT(row, HasSubstr("tokens 27280, right yes, of it"));
}

TEST(BenchRowTest, PartsAddUpAndKeepTheirPrecisionWhereAllHaveOne) {
  BenchRow row{.name = "whole"};
  AddPart({.product_flop = 3e12, .bytes = 1e9}, 0.25, row);
  AddPart({.attention_flop = 4e12, .bytes = 2e9, .upload_bytes = 5}, 0.5, row);
  EXPECT_EQ(row.work->product_flop, 3e12);
  EXPECT_EQ(row.work->attention_flop, 4e12);
  EXPECT_EQ(row.work->bytes, 3e9);
  EXPECT_EQ(row.work->upload_bytes, 5);
  EXPECT_EQ(row.work->precision, "bf16");
  EXPECT_EQ(row.ceiling_seconds, 0.75);
  AddPart({.product_flop = 1e12, .precision = "fp16"}, 1.25, row);
  EXPECT_EQ(row.work->precision, kMixed);
  EXPECT_EQ(row.ceiling_seconds, 2);
}

TEST(BenchRowTest, APartWithoutAFloorLeavesTheWholeWithoutOne) {
  BenchRow row{.name = "whole"};
  AddPart({.product_flop = 3e12}, 0.25, row);
  AddPart({.product_flop = 1e12, .precision = "fp8"}, std::nullopt, row);
  EXPECT_EQ(row.ceiling_seconds, std::nullopt);
  AddPart({.product_flop = 3e12}, 0.25, row);
  EXPECT_EQ(row.ceiling_seconds, std::nullopt);
}

TEST(BenchRowTest, CopiesHaveARateOfBytes) {
  BenchRow row{.name = "copy", .timing = Timing{0.5, 0.5, 0.5, 1}, .work = Work{.bytes = 2e12}};
  EXPECT_THAT(TableRow(row), HasSubstr("4000.00 GB/s"));
  EXPECT_EQ(json::parse(ToJsonLine(row))["bytes_per_second"], 4e12);
  EXPECT_THAT(ToJsonLine(row), Not(HasSubstr("flop")));
}

}  // namespace
}  // namespace wan
