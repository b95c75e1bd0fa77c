#include "engine/monitor/proc_stats.h"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string_view>
#include <vector>

namespace wan {
namespace {

std::string ReadFile(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// Returns the bytes in a line such as "Name: 123 kB".
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

std::optional<uint64_t> Number(const std::string& text) {
  std::istringstream stream(text);
  uint64_t number = 0;
  return stream >> number ? std::optional(number) : std::nullopt;
}

// Returns the value in a line such as "name 123".
std::optional<uint64_t> StatField(const std::string& text, std::string_view name) {
  std::istringstream lines(text);
  std::string key;
  for (uint64_t value = 0; lines >> key >> value;) {
    if (key == name) return value;
  }
  return std::nullopt;
}

// Returns the folders of the process's control group and of its ancestors, whose limits apply as
// well. Some folders may not exist, because a container may see only a part of the hierarchy.
std::vector<std::string> GroupFolders(const std::string& proc_self_cgroup) {
  std::vector<std::string> folders;
  std::istringstream lines(proc_self_cgroup);
  for (std::string line; std::getline(lines, line);) {
    // A line is "4:memory:/a/b" in version 1, which mounts each controller, and "0::/a/b" in
    // version 2.
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    if (!controllers.empty() && controllers != "memory") continue;
    const std::string mount = controllers.empty() ? "/sys/fs/cgroup" : "/sys/fs/cgroup/memory";
    std::string group = line.substr(second + 1);
    while (!group.empty() && group != "/") {
      folders.push_back(mount + group);
      group.resize(group.rfind('/') == std::string::npos ? 0 : group.rfind('/'));
    }
    folders.push_back(mount);
  }
  return folders;
}

std::optional<SystemMemory> ReadGroupMemory(const std::string& folder) {
  const std::string limit = ReadFile(folder + "/memory.max");
  if (limit.empty()) {
    return ParseGroupMemory(ReadFile(folder + "/memory.limit_in_bytes"),
                            ReadFile(folder + "/memory.usage_in_bytes"),
                            ReadFile(folder + "/memory.stat"));
  }
  return ParseGroupMemory(limit, ReadFile(folder + "/memory.current"),
                          ReadFile(folder + "/memory.stat"));
}

}  // namespace

std::optional<CpuTicks> ParseCpuTicks(const std::string& proc_stat) {
  std::istringstream line(proc_stat);
  std::string label;
  if (!(line >> label) || label != "cpu") return std::nullopt;
  // The fields are user nice system idle iowait irq softirq steal; guest time is already contained
  // in user.
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

std::optional<SystemMemory> ParseGroupMemory(const std::string& limit, const std::string& usage,
                                             const std::string& memory_stat) {
  // Without a limit, version 2 says "max", and version 1 a number that is larger than any memory.
  const std::optional<uint64_t> total = Number(limit);
  const std::optional<uint64_t> charged = Number(usage);
  if (!total || !charged) return std::nullopt;
  uint64_t cached = 0;
  for (const std::string name : {"active_file", "inactive_file"}) {
    // In version 2 the figures include subgroups; in version 1 only those whose names begin with
    // total_ do.
    const auto whole = StatField(memory_stat, "total_" + name);
    cached += whole ? *whole : StatField(memory_stat, name).value_or(0);
  }
  return SystemMemory{*total, std::min(*total, *charged - std::min(cached, *charged))};
}

std::optional<ProcessMemory> ParseProcessMemory(const std::string& proc_self_status) {
  const auto resident = KilobytesField(proc_self_status, "VmRSS:");
  const auto peak = KilobytesField(proc_self_status, "VmHWM:");
  if (!resident || !peak) return std::nullopt;
  return ProcessMemory{*resident, *peak};
}

std::optional<uint64_t> ParseProcessTicks(const std::string& proc_self_stat) {
  // The second field is the name of the program in brackets. The name itself may contain brackets
  // and spaces.
  const size_t name_end = proc_self_stat.rfind(')');
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream fields(proc_self_stat.substr(name_end + 1));
  // Skip the eleven fields between the program's name and utime, stime.
  std::string skipped;
  for (int i = 0; i < 11; ++i) fields >> skipped;
  uint64_t user = 0, system = 0;
  if (!(fields >> user >> system)) return std::nullopt;
  return user + system;
}

std::optional<CpuTicks> ReadCpuTicks() {
  std::optional<CpuTicks> ticks = ParseCpuTicks(ReadFile("/proc/stat"));
  if (ticks) ticks->process = ParseProcessTicks(ReadFile("/proc/self/stat"));
  return ticks;
}

std::optional<SystemMemory> ReadSystemMemory(const std::string& root) {
  std::optional<SystemMemory> memory = ParseSystemMemory(ReadFile(root + "/proc/meminfo"));
  if (!memory) return std::nullopt;
  uint64_t available = memory->total_bytes - memory->used_bytes;
  for (const std::string& folder : GroupFolders(ReadFile(root + "/proc/self/cgroup"))) {
    const std::optional<SystemMemory> group = ReadGroupMemory(root + folder);
    if (!group) continue;
    available = std::min(available, group->total_bytes - group->used_bytes);
    memory->total_bytes = std::min(memory->total_bytes, group->total_bytes);
  }
  memory->used_bytes = memory->total_bytes - std::min(available, memory->total_bytes);
  return memory;
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

std::optional<double> ProcessCpuPercent(const std::optional<CpuTicks>& from,
                                        const std::optional<CpuTicks>& to) {
  if (!from || !to || to->total <= from->total) return std::nullopt;
  if (!from->process || !to->process || *to->process < *from->process) return std::nullopt;
  // Cut the result to 100, because the kernel updates the times of the process and of the machine
  // at different moments.
  return std::min(100.0, 100.0 * static_cast<double>(*to->process - *from->process) /
                             static_cast<double>(to->total - from->total));
}

}  // namespace wan
