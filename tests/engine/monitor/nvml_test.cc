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

namespace wan {
namespace {

TEST(NvmlTest, AnUnknownCardIsNull) { EXPECT_EQ(OpenNvmlDevice("0000:02:00.0"), nullptr); }

TEST(NvmlTest, WhatTheDriverDoesNotSayIsAbsent) {
  const auto device = OpenNvmlDevice(kFakeGpu);
  ASSERT_NE(device, nullptr);
  const GpuCounters counters = device->Read();
  EXPECT_EQ(counters.name, "Fake GPU");
  EXPECT_EQ(counters.memory_used_bytes, 600u);
  EXPECT_EQ(counters.memory_total_bytes, 1000u);
  EXPECT_EQ(counters.utilization_percent, 55);
  EXPECT_EQ(counters.power_watts, 432.1);
  EXPECT_EQ(counters.temperature_celsius, std::nullopt);
  EXPECT_EQ(counters.sm_clock_mhz, 1980);
  EXPECT_EQ(counters.memory_clock_mhz, 3201);
  EXPECT_EQ(counters.throttle_reasons, (std::vector<std::string>{"power cap", "temperature"}));
  EXPECT_EQ(device->ReadMemoryUsedBytes(), 600u);
  EXPECT_EQ(device->ReadUtilizationPercent(), 55);
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
          EXPECT_GT(device->SmActivity(*last, *sample).value_or(0), 0);
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
  MachineMonitor monitor("cuda:0", nullptr, std::move(device));
  const std::unique_ptr<ResourceProbe> probe = monitor.StartProbe();
  const std::vector<DeviceSample> samples = monitor.Sample();
  ASSERT_EQ(samples.size(), 2u);
  // NVML's utilisation takes its place.
  EXPECT_EQ(samples[1].sm_activity_percent, 55);
  EXPECT_EQ(probe->Finish().sm_activity_percent, 55);
  EXPECT_EQ(FakeNvmlGpmCalls(), before);

  EXPECT_NE(OpenNvmlDevice(kFakeGpu), nullptr);
  EXPECT_GT(FakeNvmlGpmCalls(), before);
}

}  // namespace
}  // namespace wan
