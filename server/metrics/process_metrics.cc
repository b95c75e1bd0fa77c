#include "server/metrics/process_metrics.h"

#include <unistd.h>

#include <fstream>
#include <iterator>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "server/metrics/families.h"

namespace wan::server {
namespace {

std::string TextOf(const char* path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// Returns when the machine was booted, in seconds since 1970; 0 if unknown.
double BootTime() {
  for (const absl::string_view line : absl::StrSplit(TextOf("/proc/stat"), '\n')) {
    const std::vector<absl::string_view> words = absl::StrSplit(line, ' ');
    double seconds = 0;
    if (words.size() == 2 && words[0] == "btime" && absl::SimpleAtod(words[1], &seconds)) {
      return seconds;
    }
  }
  return 0;
}

}  // namespace

ProcessFigures ParseProcessStat(std::string_view stat, double boot_time, double ticks,
                                double page_bytes) {
  // Skip the second field: the program's name in brackets, which may contain spaces and brackets.
  const size_t end_of_name = stat.rfind(')');
  if (end_of_name == std::string_view::npos) return {};
  const std::string rest(stat.substr(end_of_name + 1));
  const std::vector<std::string> fields =
      absl::StrSplit(rest, absl::ByAnyChar(" \n"), absl::SkipEmpty());
  // proc(5) numbers the fields from 1; fields[0] is its field 3.
  const auto field = [&](size_t number) {
    double value = 0;
    if (number - 3 < fields.size() && !absl::SimpleAtod(fields[number - 3], &value)) value = 0;
    return value;
  };
  ProcessFigures figures;
  figures.cpu_seconds = (field(14) + field(15)) / ticks;
  figures.threads = field(20);
  figures.start_time = boot_time + field(22) / ticks;
  figures.virtual_bytes = field(23);
  figures.resident_bytes = field(24) * page_bytes;
  return figures;
}

void AddProcess(const WireStats& wire, std::vector<prometheus::MetricFamily>& families) {
  static const double boot_time = BootTime();
  const ProcessFigures figures = ParseProcessStat(TextOf("/proc/self/stat"), boot_time,
                                                  static_cast<double>(sysconf(_SC_CLK_TCK)),
                                                  static_cast<double>(sysconf(_SC_PAGESIZE)));
  const struct {
    const char* name;
    double value;
  } rows[] = {
      {"process_cpu_seconds_total", figures.cpu_seconds},
      {"process_start_time_seconds", figures.start_time},
      {"process_virtual_memory_bytes", figures.virtual_bytes},
      {"process_resident_memory_bytes", figures.resident_bytes},
      {"process_threads", figures.threads},
      {"process_open_fds", static_cast<double>(wire.descriptors)},
      {"process_max_fds", static_cast<double>(wire.descriptors_limit)},
  };
  for (const auto& row : rows) {
    ScrapedFamily family(row.name);
    if (row.value > 0) family.Add({}, row.value);
    family.MoveTo(families);
  }
}

}  // namespace wan::server
