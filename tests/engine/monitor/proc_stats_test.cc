#include "engine/monitor/proc_stats.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <utility>

#include "tests/engine/formats/files.h"

namespace wan {
namespace {

// A machine's /proc and /sys.
class Machine {
 public:
  Machine(const std::string& meminfo, const std::string& own_group) {
    Write("proc/meminfo", meminfo);
    Write("proc/self/cgroup", own_group);
  }
  void Write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories((folder_ / path).parent_path());
    testing::WriteFile(folder_ / path, text);
  }
  // Total and used, in KiB.
  std::pair<int, int> Memory() const {
    const SystemMemory memory = ReadSystemMemory(folder_.string()).value_or(SystemMemory{});
    return {static_cast<int>(memory.total_bytes / 1024),
            static_cast<int>(memory.used_bytes / 1024)};
  }

 private:
  const testing::TempFolder folder_;
};

constexpr char kMeminfo[] = "MemTotal: 1000 kB\nMemAvailable: 700 kB\n";
std::string KiB(int count) { return std::to_string(count * 1024) + "\n"; }

TEST(ProcStatsTest, AProcessHasItsUserAndSystemTime) {
  EXPECT_EQ(ParseProcessTicks("7 (a) b ) S 1 7 7 0 -1 4194304 11 12 13 14 150 25 1 2 20 0"), 175u);
  EXPECT_EQ(ParseProcessTicks("7 (wanserve) S 1 7"), std::nullopt);
  EXPECT_EQ(ParseProcessTicks(""), std::nullopt);
}

TEST(ProcStatsTest, TheProcessPercentIsAPartOfTheMachines) {
  EXPECT_DOUBLE_EQ(*ProcessCpuPercent(CpuTicks{100, 1000, 40}, CpuTicks{150, 1200, 70}), 15.0);
  EXPECT_DOUBLE_EQ(*ProcessCpuPercent(CpuTicks{100, 1000, 40}, CpuTicks{150, 1010, 70}), 100.0);
  EXPECT_FALSE(ProcessCpuPercent(CpuTicks{100, 1000, 40}, CpuTicks{100, 1000, 40}).has_value());
  EXPECT_FALSE(ProcessCpuPercent(CpuTicks{100, 1000}, CpuTicks{150, 1200, 70}).has_value());
  EXPECT_FALSE(ProcessCpuPercent(std::nullopt, CpuTicks{150, 1200, 70}).has_value());
}

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

TEST(ProcStatsTest, GroupsDoNotUseWhatTheyCache) {
  const auto memory =
      ParseGroupMemory("1000\n", "900\n", "anon 1\nfile 650\ninactive_file 400\nactive_file 200\n");
  ASSERT_TRUE(memory.has_value());
  EXPECT_EQ(memory->total_bytes, 1000u);
  EXPECT_EQ(memory->used_bytes, 300u);
  // Of version 1, with the groups inside.
  EXPECT_EQ(
      ParseGroupMemory("1000\n", "900\n", "inactive_file 1\ntotal_inactive_file 500\n")->used_bytes,
      400u);
  EXPECT_EQ(ParseGroupMemory("1000\n", "1200\n", "")->used_bytes, 1000u);
  EXPECT_EQ(ParseGroupMemory("1000\n", "100\n", "active_file 200\n")->used_bytes, 0u);
  EXPECT_FALSE(ParseGroupMemory("max\n", "900\n", "").has_value());
  EXPECT_FALSE(ParseGroupMemory("", "", "").has_value());
  EXPECT_FALSE(ParseGroupMemory("1000\n", "", "").has_value());
}

TEST(ProcStatsTest, WithoutLimitsMemoryIsTheMachines) {
  Machine machine(kMeminfo, "0::/\n");
  EXPECT_EQ(machine.Memory(), std::pair(1000, 300));
  machine.Write("sys/fs/cgroup/memory.max", "max\n");
  machine.Write("sys/fs/cgroup/memory.current", KiB(100));
  EXPECT_EQ(machine.Memory(), std::pair(1000, 300));
}

TEST(ProcStatsTest, AContainersLimitCounts) {
  Machine machine(kMeminfo, "0::/\n");
  machine.Write("sys/fs/cgroup/memory.max", KiB(400));
  machine.Write("sys/fs/cgroup/memory.current", KiB(350));
  machine.Write("sys/fs/cgroup/memory.stat",
                "active_file " + KiB(50) + "inactive_file " + KiB(200));
  EXPECT_EQ(machine.Memory(), std::pair(400, 100));
}

TEST(ProcStatsTest, TheTightestOfNestedGroupsCounts) {
  Machine machine(kMeminfo, "0::/a/b/c\n");
  machine.Write("sys/fs/cgroup/a/memory.max", KiB(600));
  machine.Write("sys/fs/cgroup/a/memory.current", KiB(580));
  machine.Write("sys/fs/cgroup/a/b/c/memory.max", KiB(500));
  machine.Write("sys/fs/cgroup/a/b/c/memory.current", KiB(100));
  // 20 KiB are left in the outer one, of at most 500 for the inner one.
  EXPECT_EQ(machine.Memory(), std::pair(500, 480));
}

TEST(ProcStatsTest, AMachineCanHaveLessThanALimitLeaves) {
  Machine machine(kMeminfo, "0::/a\n");
  machine.Write("sys/fs/cgroup/a/memory.max", KiB(900));
  machine.Write("sys/fs/cgroup/a/memory.current", KiB(10));
  EXPECT_EQ(machine.Memory(), std::pair(900, 200));
}

// A container of version 1 sees its own group where others have the root.
TEST(ProcStatsTest, LimitsOfVersion1Count) {
  const std::string own = "12:cpu,cpuacct:/docker/1\n4:memory:/docker/1\n0::/docker/1\n";
  Machine machine(kMeminfo, own);
  machine.Write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  machine.Write("sys/fs/cgroup/memory/memory.usage_in_bytes", KiB(150));
  EXPECT_EQ(machine.Memory(), std::pair(1000, 300));
  machine.Write("sys/fs/cgroup/memory/memory.limit_in_bytes", KiB(200));
  EXPECT_EQ(machine.Memory(), std::pair(200, 150));
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
