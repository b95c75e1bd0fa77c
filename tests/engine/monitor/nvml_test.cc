#include "engine/monitor/nvml.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "engine/monitor/machine_monitor.h"
#include "tests/engine/monitor/fake_nvml.h"
#include "tests/fakes/fake_clock.h"

namespace wan {
namespace {

TEST(NvmlTest, AnUnknownCardIsNull) { EXPECT_EQ(OpenNvmlDevice("0000:02:00.0"), nullptr); }

TEST(NvmlTest, WhatTheDriverDoesNotSayIsAbsent) {
  const auto device = OpenNvmlDevice(kFakeGpu);
  ASSERT_NE(device, nullptr);
  const GpuCounters counters = device->Read();
  EXPECT_EQ(counters.memory_used_bytes, 600u);
  EXPECT_EQ(counters.memory_total_bytes, 1000u);
  EXPECT_EQ(counters.utilization_percent, 55);
  EXPECT_EQ(counters.power_watts, 432.1);
  EXPECT_EQ(counters.temperature_celsius, std::nullopt);
  EXPECT_EQ(counters.sm_clock_mhz, 1980);
  EXPECT_EQ(counters.memory_clock_mhz, 3201);
  EXPECT_EQ(counters.throttle_reasons, (std::vector<std::string>{"power cap", "temperature"}));
  EXPECT_EQ(device->ReadEnergyJoules(), 12345.678);
  EXPECT_EQ(device->CountProcesses(), 2);
}

TEST(NvmlTest, TheCardDescribesItself) {
  const auto device = OpenNvmlDevice(kFakeGpu);
  ASSERT_NE(device, nullptr);
  const GpuFacts facts = device->Describe();
  EXPECT_EQ(facts.name, "Fake GPU");
  EXPECT_EQ(facts.uuid, "GPU-fake");
  EXPECT_EQ(facts.driver_version, "580.159.04");
  EXPECT_EQ(facts.memory_total_bytes, 1000u);
  EXPECT_EQ(facts.power_limit_watts, 700);
  EXPECT_EQ(facts.sm_clock_max_mhz, 1980);
  EXPECT_EQ(facts.memory_clock_max_mhz, std::nullopt);
  EXPECT_TRUE(facts.has_gpm);
}

TEST(NvmlTest, EachMetricOfGpmIsItsOwn) {
  const auto device = OpenNvmlDevice(kFakeGpu);
  ASSERT_NE(device, nullptr);
  std::vector<std::unique_ptr<GpmSample>> samples;
  while (samples.size() < 2) {
    if (auto sample = device->TakeGpmSample()) samples.push_back(std::move(sample));
  }
  const GpmMetrics metrics = device->Between(*samples[0], *samples[1]);
  ASSERT_TRUE(metrics.sm_activity_percent.has_value());
  EXPECT_GT(*metrics.sm_activity_percent, 0);
  EXPECT_EQ(metrics.tensor_activity_percent, *metrics.sm_activity_percent / 2);
  EXPECT_EQ(metrics.sm_occupancy_percent, *metrics.sm_activity_percent / 2);
  EXPECT_EQ(metrics.dram_bandwidth_percent, std::nullopt);
}

TEST(NvmlTest, OnlyWhatHoldsClocksDownIsAReason) {
  EXPECT_TRUE(ThrottleReasonNames(0).empty());
  // Idle, set by an operator, and following another display.
  EXPECT_TRUE(ThrottleReasonNames(0x103).empty());
  EXPECT_EQ(ThrottleReasonNames(0x8000'0000'0080),
            (std::vector<std::string>{"power brake", "reason 0x800000000000"}));
}

TEST(NvmlTest, GpmCallsOfAllThreadsTakeTurns) {
  const auto device = OpenNvmlDevice(kFakeGpu);
  ASSERT_NE(device, nullptr);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      std::unique_ptr<GpmSample> last;
      for (int i = 0; i < 500; ++i) {
        std::unique_ptr<GpmSample> sample = device->TakeGpmSample();
        if (sample == nullptr) continue;
        if (last != nullptr) {
          EXPECT_GT(device->Between(*last, *sample).sm_activity_percent.value_or(0), 0);
        }
        last = std::move(sample);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(FakeNvmlOverlaps(), 0);
  EXPECT_EQ(FakeNvmlSamples(), 0);
}

TEST(NvmlTest, GpmThatIsOffIsNeverCalled) {
  const int before = FakeNvmlGpmCalls();
  auto device = OpenNvmlDevice(kFakeGpu, GpmUse::kOff);
  ASSERT_NE(device, nullptr);
  EXPECT_EQ(device->TakeGpmSample(), nullptr);
  fakes::FakeClock clock;
  MachineMonitor monitor("cuda:0", nullptr, std::move(device), clock);
  const std::unique_ptr<ResourceProbe> probe = monitor.StartProbe();
  for (int i = 0; i < 4; ++i) {
    monitor.Tick();
    clock.Advance(absl::Milliseconds(50));
  }
  const std::vector<DeviceSample> samples = monitor.Sample();
  ASSERT_EQ(samples.size(), 2u);
  // NVML's utilisation takes its place.
  EXPECT_NEAR(samples[1].sm_activity_percent.value_or(0), 55, 1e-6);
  EXPECT_NEAR(probe->Finish().sm_activity_percent.value_or(0), 55, 1e-6);
  EXPECT_EQ(FakeNvmlGpmCalls(), before);

  EXPECT_NE(OpenNvmlDevice(kFakeGpu), nullptr);
  EXPECT_GT(FakeNvmlGpmCalls(), before);
}

}  // namespace
}  // namespace wan
