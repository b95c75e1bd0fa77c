#include "benchmarks/session.h"

#include <ATen/Context.h>
#include <ATen/DeviceAccelerator.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "benchmarks/card_watch.h"
#include "benchmarks/measure_ceilings.h"
#include "engine/device/library_defaults.h"
#include "engine/device/plugin_loader.h"
#include "engine/monitor/proc_stats.h"

namespace wan {
namespace {

// A trace leaves out operators with a smaller share of its time.
constexpr double kLeastShare = 1e-3;

// Returns the number of calls of `one` seconds each that take at least `seconds` together.
int64_t CallsThatTake(double seconds, double one) {
  return std::max<int64_t>(3, std::llround(std::ceil(seconds / one)));
}

}  // namespace

Session::Session(std::string command, SessionOptions options)
    : command_(std::move(command)), options_(std::move(options)), device_name_(ReadCpuName()) {}

absl::StatusOr<at::Device> Session::Open(const std::string& device) {
  device_ = at::Device(device);
  if (device_.is_cpu()) return device_;
  if (const auto plugin = LoadCudaPlugin(); !plugin.ok()) return plugin.status();
  if (absl::Status status = CheckGpuIsCompiledFor(device_.index()); !status.ok()) return status;
  at::globalContext().lazyInitDevice(device_.type());
  at::accelerator::setDeviceIndex(device_.index());
  ReplaceLibraryDefaults();
  if (const auto bus_id = CudaPciBusId(device_.index()); bus_id.ok()) {
    card_ = OpenNvmlDevice(*bus_id);
  }
  device_name_ = card_ != nullptr ? card_->Describe().name : device;
  return device_;
}

absl::Status Session::FindCeilings() {
  if (!options_.ceilings.empty()) {
    absl::StatusOr<Ceilings> read = client::reports::ReadCeilings(options_.ceilings);
    if (!read.ok()) return read.status();
    if (read->device != device_name_) {
      return absl::InvalidArgumentError(absl::StrCat("'", options_.ceilings, "' has ceilings of '",
                                                     read->device, "'; this device is '",
                                                     device_name_, "'"));
    }
    ceilings_ = *std::move(read);
  } else if (!device_.is_cpu() && !options_.no_ceilings) {
    Note("measuring the card's ceilings; --ceilings FILE takes those of `wan_bench ceilings`");
    ceilings_ = MeasureMainCeilings(*this);
  }
  return absl::OkStatus();
}

std::optional<double> Session::FloorSeconds(const Work& work) const {
  return ceilings_.has_value() ? wan::FloorSeconds(*ceilings_, work) : std::nullopt;
}

absl::Status Session::Add(BenchRow row) {
  row.command = command_;
  row.device = device_name_;
  if (!row.ceiling_seconds.has_value() && row.work.has_value()) {
    row.ceiling_seconds = FloorSeconds(*row.work);
  }
  const std::string line = absl::StrCat(ToJsonLine(row), "\n");
  if (options_.json) {
    std::fputs(line.c_str(), stdout);
  } else {
    if (!std::exchange(has_header_, true)) std::fputs(TableHeader().c_str(), stdout);
    std::fputs(TableRow(row).c_str(), stdout);
  }
  std::fflush(stdout);
  if (options_.rows.empty()) return absl::OkStatus();
  std::ofstream file(options_.rows, std::ios::app);
  file << line << std::flush;
  return file.good() ? absl::OkStatus()
                     : absl::UnavailableError(absl::StrCat("cannot write '", options_.rows, "'"));
}

void Session::Note(const std::string& line) const {
  std::FILE* const out = options_.json ? stderr : stdout;
  std::fprintf(out, "%s\n", line.c_str());
  std::fflush(out);
}

BenchRow Session::Sustain(const std::string& name, double seconds,
                          const std::function<void()>& call) {
  const auto timed = [&](int64_t calls) {
    Synchronize(device_);
    const auto start = std::chrono::steady_clock::now();
    for (int64_t i = 0; i < calls; ++i) call();
    Synchronize(device_);
    return SecondsSince(start);
  };
  timed(1);
  const int64_t calls = CallsThatTake(seconds, timed(1));
  timed(calls / 3);
  BenchRow row{.name = name};
  CardWatch watch(card_.get());
  const double mean = timed(calls) / static_cast<double>(calls);
  row.card = watch.Finish();
  row.timing = Timing{mean, mean, mean, calls};
  return row;
}

absl::StatusOr<BenchRow> Session::Repeat(const std::string& name, const Repetition& repetition,
                                         const std::function<absl::Status()>& call) {
  std::vector<double> seconds;
  const auto once = [&] {
    Synchronize(device_);
    const auto begin = std::chrono::steady_clock::now();
    absl::Status status = call();
    Synchronize(device_);
    seconds.push_back(SecondsSince(begin));
    return status;
  };
  for (int i = 0; i < repetition.warmup; ++i) {
    if (absl::Status status = once(); !status.ok()) return status;
    Note(absl::StrFormat("%s, warm-up %d: %.4f s", name, i + 1, seconds.back()));
  }
  int64_t repeats = repetition.repeats;
  if (repetition.seconds > 0) {
    if (absl::Status status = once(); !status.ok()) return status;
    repeats = CallsThatTake(repetition.seconds, seconds.back());
    for (int64_t i = 0; i < repeats / 3; ++i) {
      if (absl::Status status = once(); !status.ok()) return status;
    }
  }
  seconds.clear();
  BenchRow row{.name = name};
  CardWatch watch(card_.get());
  for (int64_t i = 0; i < repeats; ++i) {
    if (absl::Status status = once(); !status.ok()) return status;
  }
  row.card = watch.Finish();
  std::sort(seconds.begin(), seconds.end());
  row.timing = Timing{seconds[seconds.size() / 2], seconds.front(), seconds.back(), repeats};
  return row;
}

absl::Status Session::Trace(const std::string& name, const std::function<absl::Status()>& call) {
  CardWatch watch(card_.get());
  OpTrace trace(device_);
  const absl::Status status = call();
  const std::vector<OpTime> times = trace.Finish();
  const CardState card = watch.Finish();
  if (!status.ok()) return status;
  double sum = 0;
  for (const OpTime& time : times) sum += time.seconds;
  for (const OpTime& time : times) {
    if (time.seconds < kLeastShare * sum) break;
    BenchRow row{.name = absl::StrCat(name, ": ", time.op), .card = card};
    const double each = time.seconds / static_cast<double>(time.calls);
    row.timing = Timing{each, each, each, time.calls};
    row.figures = {{"total_seconds", time.seconds}, {"share_percent", 100 * time.seconds / sum}};
    if (absl::Status status = Add(std::move(row)); !status.ok()) return status;
  }
  return absl::OkStatus();
}

void Synchronize(at::Device device) {
  if (!device.is_cpu()) at::accelerator::synchronizeDevice(device.index());
}

double SecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Index 0 of the allocator's statistics is the total of its small and large blocks.
int64_t CurrentBytes(at::Device device) {
  if (device.is_cpu()) return 0;
  return at::accelerator::getDeviceStats(device.index()).allocated_bytes[0].current;
}

int64_t PeakBytes(at::Device device) {
  if (device.is_cpu()) return 0;
  return at::accelerator::getDeviceStats(device.index()).allocated_bytes[0].peak;
}

void ResetPeakBytes(at::Device device) {
  if (!device.is_cpu()) at::accelerator::resetPeakStats(device.index());
}

void AddMemory(at::Device device, int64_t resident, BenchRow& row) {
  if (device.is_cpu()) return;
  row.figures.push_back({"resident_gib", static_cast<double>(resident) / kGiB});
  row.figures.push_back(
      {"activations_gib", static_cast<double>(PeakBytes(device) - resident) / kGiB});
}

}  // namespace wan
