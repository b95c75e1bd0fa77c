// Reads CPU and memory figures of Linux. A function returns nullopt if the kernel's files cannot be
// read. All functions are thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace wan {

// The time of all cores since boot, in kernel ticks.
struct CpuTicks {
  uint64_t busy = 0;
  uint64_t total = 0;
  // The part of `busy` that all threads of this process have used since its start.
  std::optional<uint64_t> process = std::nullopt;
};

std::optional<CpuTicks> ReadCpuTicks();

// Returns the mean use of all cores between two readings, 0 to 100; nullopt if no tick has passed.
std::optional<double> CpuPercent(const std::optional<CpuTicks>& from,
                                 const std::optional<CpuTicks>& to);

// Returns the part of it that this process used, on the same scale.
std::optional<double> ProcessCpuPercent(const std::optional<CpuTicks>& from,
                                        const std::optional<CpuTicks>& to);

// The memory of the machine, or of this process's control group (version 1 or 2; a container has
// one) if that leaves less.
struct SystemMemory {
  uint64_t total_bytes = 0;
  uint64_t used_bytes = 0;  // total minus the memory available without swapping
};

// Tests pass as `root` a folder that has proc/ and sys/.
std::optional<SystemMemory> ReadSystemMemory(const std::string& root = "");

struct ProcessMemory {
  uint64_t resident_bytes = 0;
  uint64_t peak_resident_bytes = 0;
};

std::optional<ProcessMemory> ReadProcessMemory();

// Returns the processor's name; empty if it is unknown.
std::string ReadCpuName();

// Parse the contents of the kernel's files; separate functions for tests.
std::optional<CpuTicks> ParseCpuTicks(const std::string& proc_stat);
std::optional<uint64_t> ParseProcessTicks(const std::string& proc_self_stat);
std::optional<SystemMemory> ParseSystemMemory(const std::string& proc_meminfo);
// Parses the limit, the usage and memory.stat of one control group. Files in the page cache do not
// count as used. Returns nullopt without a limit.
std::optional<SystemMemory> ParseGroupMemory(const std::string& limit, const std::string& usage,
                                             const std::string& memory_stat);
std::optional<ProcessMemory> ParseProcessMemory(const std::string& proc_self_status);

}  // namespace wan
