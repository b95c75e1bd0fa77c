#include "engine/runtime/proc_stats.h"

#include <fstream>
#include <sstream>
#include <string_view>
#include <vector>

namespace wan {
namespace {

std::string ReadFile(const char* path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// Bytes of a line "Name:   123 kB".
std::optional<uint64_t> KilobytesField(const std::string& text, std::string_view name) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind(name, 0) != 0) continue;
    std::istringstream rest(line.substr(name.size()));
    uint64_t kilobytes = 0;
    if (rest >> kilobytes) return kilobytes * 1024;
  }
  return std::nullopt;
}

}  // namespace

std::optional<CpuTicks> ParseCpuTicks(const std::string& proc_stat) {
  std::istringstream line(proc_stat);
  std::string label;
  if (!(line >> label) || label != "cpu") return std::nullopt;
  // user nice system idle iowait irq softirq steal; guest time is already in user.
  std::vector<uint64_t> fields;
  for (uint64_t value = 0; fields.size() < 8 && line >> value;) fields.push_back(value);
  if (fields.size() < 8) return std::nullopt;
  CpuTicks ticks;
  for (const uint64_t value : fields) ticks.total += value;
  ticks.busy = ticks.total - fields[3] - fields[4];
  return ticks;
}

std::optional<SystemMemory> ParseSystemMemory(const std::string& proc_meminfo) {
  const auto total = KilobytesField(proc_meminfo, "MemTotal:");
  const auto available = KilobytesField(proc_meminfo, "MemAvailable:");
  if (!total || !available || *available > *total) return std::nullopt;
  return SystemMemory{*total, *total - *available};
}

std::optional<ProcessMemory> ParseProcessMemory(const std::string& proc_self_status) {
  const auto resident = KilobytesField(proc_self_status, "VmRSS:");
  const auto peak = KilobytesField(proc_self_status, "VmHWM:");
  if (!resident || !peak) return std::nullopt;
  return ProcessMemory{*resident, *peak};
}

std::optional<CpuTicks> ReadCpuTicks() { return ParseCpuTicks(ReadFile("/proc/stat")); }

std::optional<SystemMemory> ReadSystemMemory() {
  return ParseSystemMemory(ReadFile("/proc/meminfo"));
}

std::optional<ProcessMemory> ReadProcessMemory() {
  return ParseProcessMemory(ReadFile("/proc/self/status"));
}

std::string ReadCpuName() {
  std::istringstream lines(ReadFile("/proc/cpuinfo"));
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("model name", 0) != 0) continue;
    const size_t colon = line.find(": ");
    if (colon != std::string::npos) return line.substr(colon + 2);
  }
  return "";
}

std::optional<double> CpuPercent(const std::optional<CpuTicks>& from,
                                 const std::optional<CpuTicks>& to) {
  if (!from || !to || to->total <= from->total || to->busy < from->busy) return std::nullopt;
  return 100.0 * static_cast<double>(to->busy - from->busy) /
         static_cast<double>(to->total - from->total);
}

}  // namespace wan
