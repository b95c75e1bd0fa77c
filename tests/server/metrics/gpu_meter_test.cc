#include "server/metrics/gpu_meter.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "tests/fakes/fake_clock.h"

namespace wan::server {
namespace {

// Tells what the test sets, and counts how often it is asked.
struct Told {
  DeviceSample gpu;
  int readings = 0;
};

class ToldReader final : public DeviceReader {
 public:
  explicit ToldReader(Told& told) : told_(told) {}
  std::vector<DeviceSample> Sample() override {
    ++told_.readings;
    DeviceSample cpu;
    cpu.device = "cpu";
    return {cpu, told_.gpu};
  }

 private:
  Told& told_;
};

class GpuMeterTest : public ::testing::Test {
 protected:
  GpuMeterTest() {
    told_.gpu.device = "cuda:0";
    told_.gpu.tensor_activity_percent = 50;
    told_.gpu.dram_bandwidth_percent = 20;
  }

  fakes::FakeClock clock_;
  Told told_;
  GpuMeter meter_{std::make_unique<ToldReader>(told_), clock_};
};

TEST_F(GpuMeterTest, MeansBecomeIntegrals) {
  clock_.Advance(absl::Seconds(10));
  EXPECT_DOUBLE_EQ(*meter_.Read()["cuda:0"].tensor_seconds, 5);
  told_.gpu.tensor_activity_percent = 100;
  clock_.Advance(absl::Seconds(2));
  auto sums = meter_.Read();
  EXPECT_DOUBLE_EQ(*sums["cuda:0"].tensor_seconds, 7);
  EXPECT_DOUBLE_EQ(*sums["cuda:0"].dram_seconds, 2.4);
  EXPECT_FALSE(sums["cpu"].tensor_seconds.has_value());
}

TEST_F(GpuMeterTest, ReadersInQuickSuccessionGetTheSameSumsAndNoTimeIsLost) {
  EXPECT_TRUE(meter_.Read().empty());
  clock_.Advance(absl::Milliseconds(1500));
  EXPECT_DOUBLE_EQ(*meter_.Read()["cuda:0"].tensor_seconds, 0.75);
  clock_.Advance(absl::Milliseconds(900));
  EXPECT_DOUBLE_EQ(*meter_.Read()["cuda:0"].tensor_seconds, 0.75);
  EXPECT_EQ(told_.readings, 1);
  clock_.Advance(absl::Milliseconds(600));
  EXPECT_DOUBLE_EQ(*meter_.Read()["cuda:0"].tensor_seconds, 1.5);
  EXPECT_EQ(told_.readings, 2);
}

TEST_F(GpuMeterTest, WhatTheCardDoesNotTellIsAbsentOrNotCounted) {
  told_.gpu.dram_bandwidth_percent.reset();
  clock_.Advance(absl::Seconds(4));
  EXPECT_FALSE(meter_.Read()["cuda:0"].dram_seconds.has_value());
  told_.gpu.tensor_activity_percent.reset();
  clock_.Advance(absl::Seconds(4));
  EXPECT_DOUBLE_EQ(*meter_.Read()["cuda:0"].tensor_seconds, 2);
}

}  // namespace
}  // namespace wan::server
