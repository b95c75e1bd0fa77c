#include "engine/runtime/proc_stats.h"

#include <gtest/gtest.h>

#include <string>

namespace wan {
namespace {

TEST(ProcStatsTest, BusyTimeLeavesIdleAndWaitingOut) {
  const auto ticks = ParseCpuTicks("cpu  100 20 30 800 40 5 5 0 7 0\ncpu0 1 2 3 4 5 6 7 8\n");
  ASSERT_TRUE(ticks.has_value());
  EXPECT_EQ(ticks->total, 1000u);
  EXPECT_EQ(ticks->busy, 160u);
}

TEST(ProcStatsTest, AbsentRatherThanWrong) {
  EXPECT_FALSE(ParseCpuTicks("").has_value());
  EXPECT_FALSE(ParseCpuTicks("cpu 1 2 3\n").has_value());
  EXPECT_FALSE(ParseSystemMemory("MemTotal: 5 kB\n").has_value());
  EXPECT_FALSE(ParseProcessMemory("Name: x\n").has_value());
}

TEST(ProcStatsTest, PercentIsOfTheTicksBetween) {
  EXPECT_DOUBLE_EQ(*CpuPercent(CpuTicks{100, 1000}, CpuTicks{150, 1200}), 25.0);
  EXPECT_FALSE(CpuPercent(CpuTicks{100, 1000}, CpuTicks{100, 1000}).has_value());
  EXPECT_FALSE(CpuPercent(std::nullopt, CpuTicks{100, 1000}).has_value());
}

TEST(ProcStatsTest, MemoryInBytes) {
  const auto memory =
      ParseSystemMemory("MemTotal:  1000 kB\nMemFree: 1 kB\nMemAvailable: 250 kB\n");
  ASSERT_TRUE(memory.has_value());
  EXPECT_EQ(memory->total_bytes, 1000u * 1024);
  EXPECT_EQ(memory->used_bytes, 750u * 1024);
  const auto process = ParseProcessMemory("VmPeak: 9 kB\nVmHWM:\t  30 kB\nVmRSS:\t  20 kB\n");
  ASSERT_TRUE(process.has_value());
  EXPECT_EQ(process->resident_bytes, 20u * 1024);
  EXPECT_EQ(process->peak_resident_bytes, 30u * 1024);
}

TEST(ProcStatsTest, ThisMachineCanBeRead) {
  EXPECT_TRUE(ReadCpuTicks().has_value());
  const auto memory = ReadSystemMemory();
  ASSERT_TRUE(memory.has_value());
  EXPECT_GT(memory->total_bytes, memory->used_bytes);
  const auto process = ReadProcessMemory();
  ASSERT_TRUE(process.has_value());
  EXPECT_GE(process->peak_resident_bytes, process->resident_bytes);
}

}  // namespace
}  // namespace wan
