// Reads the figures that Linux has about CPU and memory. If a file of the kernel cannot be read,
// the functions return nullopt. All functions are thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace wan {

// The time of all cores since the machine started, in ticks of the kernel.
struct CpuTicks {
  uint64_t busy = 0;
  uint64_t total = 0;
  // The part of `busy` that this process has used since its start.
  std::optional<uint64_t> process = std::nullopt;
};

std::optional<CpuTicks> ReadCpuTicks();

// Returns the mean use of all cores between two readings, in percent, 0 to 100; nullopt if no tick
// has passed.
std::optional<double> CpuPercent(const std::optional<CpuTicks>& from,
                                 const std::optional<CpuTicks>& to);

// Returns the part of CpuPercent that this process used.
std::optional<double> ProcessCpuPercent(const std::optional<CpuTicks>& from,
                                        const std::optional<CpuTicks>& to);

// The memory of the machine, or of the process's control group (version 1 or 2), whichever leaves
// less.
struct SystemMemory {
  uint64_t total_bytes = 0;
  uint64_t used_bytes = 0;  // total memory minus what is available without swapping
};

// Tests pass as `root` a folder that contains a proc/ and a sys/ of their own.
std::optional<SystemMemory> ReadSystemMemory(const std::string& root = "");

struct ProcessMemory {
  uint64_t resident_bytes = 0;
  uint64_t peak_resident_bytes = 0;
};

std::optional<ProcessMemory> ReadProcessMemory();

// Returns the processor's name; empty if it is unknown.
std::string ReadCpuName();

// The Parse functions take the content of files of the kernel. The Parse functions are separate, so
// that tests can call them.
std::optional<CpuTicks> ParseCpuTicks(const std::string& proc_stat);
std::optional<uint64_t> ParseProcessTicks(const std::string& proc_self_stat);
std::optional<SystemMemory> ParseSystemMemory(const std::string& proc_meminfo);
// Parses the limit, the usage and memory.stat of a control group. Cached pages of files do not
// count as used. Returns nullopt if there is no limit.
std::optional<SystemMemory> ParseGroupMemory(const std::string& limit, const std::string& usage,
                                             const std::string& memory_stat);
std::optional<ProcessMemory> ParseProcessMemory(const std::string& proc_self_status);

}  // namespace wan
