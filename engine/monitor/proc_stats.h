// Reads CPU and memory figures of Linux. Functions return nullopt if the kernel's files cannot be
// read. All functions are thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace wan {

// Time of all cores since boot, in kernel ticks.
struct CpuTicks {
  uint64_t busy = 0;
  uint64_t total = 0;
  // The part of `busy` used by this process since its start.
  std::optional<uint64_t> process = std::nullopt;
};

std::optional<CpuTicks> ReadCpuTicks();

// Returns the mean use of all cores between two readings, 0 to 100; nullopt if no tick passed.
std::optional<double> CpuPercent(const std::optional<CpuTicks>& from,
                                 const std::optional<CpuTicks>& to);

// Returns this process's part of CpuPercent.
std::optional<double> ProcessCpuPercent(const std::optional<CpuTicks>& from,
                                        const std::optional<CpuTicks>& to);

// Memory of the machine, or of the process's control group (version 1 or 2), whichever leaves less.
struct SystemMemory {
  uint64_t total_bytes = 0;
  uint64_t used_bytes = 0;  // total minus what is available without swapping
};

// Tests pass a folder with proc/ and sys/ as `root`.
std::optional<SystemMemory> ReadSystemMemory(const std::string& root = "");

struct ProcessMemory {
  uint64_t resident_bytes = 0;
  uint64_t peak_resident_bytes = 0;
};

std::optional<ProcessMemory> ReadProcessMemory();

// Returns the processor's name; empty if it is unknown.
std::string ReadCpuName();

// The Parse functions take the content of kernel files; they are separate for tests.
std::optional<CpuTicks> ParseCpuTicks(const std::string& proc_stat);
std::optional<uint64_t> ParseProcessTicks(const std::string& proc_self_stat);
std::optional<SystemMemory> ParseSystemMemory(const std::string& proc_meminfo);
// Parses limit, usage and memory.stat of a control group. Cached file pages do not count as used.
// Returns nullopt without a limit.
std::optional<SystemMemory> ParseGroupMemory(const std::string& limit, const std::string& usage,
                                             const std::string& memory_stat);
std::optional<ProcessMemory> ParseProcessMemory(const std::string& proc_self_status);

}  // namespace wan
