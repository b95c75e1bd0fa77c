// What Linux tells of CPU and memory. Absent where the kernel's files cannot be read.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace wan {

// Time of all cores since boot, in kernel ticks.
struct CpuTicks {
  uint64_t busy = 0;
  uint64_t total = 0;
  // The part of `busy` that this process used since its start, with all of its threads.
  std::optional<uint64_t> process = std::nullopt;
};

std::optional<CpuTicks> ReadCpuTicks();

// Mean use of all cores between two readings, 0 to 100; absent if no tick passed.
std::optional<double> CpuPercent(const std::optional<CpuTicks>& from,
                                 const std::optional<CpuTicks>& to);

// Mean use of all cores by this process between two readings, on the same scale.
std::optional<double> ProcessCpuPercent(const std::optional<CpuTicks>& from,
                                        const std::optional<CpuTicks>& to);

// Of the machine, or of this process' control group (a container's, version 1 or 2) where that gets
// less.
struct SystemMemory {
  uint64_t total_bytes = 0;
  uint64_t used_bytes = 0;  // total less what could be had without swapping
};

// `root` is where /proc and /sys lie, for tests.
std::optional<SystemMemory> ReadSystemMemory(const std::string& root = "");

struct ProcessMemory {
  uint64_t resident_bytes = 0;
  uint64_t peak_resident_bytes = 0;
};

std::optional<ProcessMemory> ReadProcessMemory();

// Processor's name; empty if unknown.
std::string ReadCpuName();

// The same from given texts, for tests.
std::optional<CpuTicks> ParseCpuTicks(const std::string& proc_stat);
std::optional<uint64_t> ParseProcessTicks(const std::string& proc_self_stat);
std::optional<SystemMemory> ParseSystemMemory(const std::string& proc_meminfo);
// Of one control group, from its limit, its usage and its memory.stat, of which files in the page
// cache do not count as used. Absent without a limit.
std::optional<SystemMemory> ParseGroupMemory(const std::string& limit, const std::string& usage,
                                             const std::string& memory_stat);
std::optional<ProcessMemory> ParseProcessMemory(const std::string& proc_self_status);

}  // namespace wan
