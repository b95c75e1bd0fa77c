#include "engine/monitor/machine_monitor.h"

#include <algorithm>
#include <utility>

namespace wan {
namespace {

// Most age at which a GPM sample still stands for now.
constexpr int64_t kGpmFreshNanos = 25'000'000;
// Most age at which the other readings of the machine still stand for now: the kernel counts
// processor time in steps of this length.
constexpr int64_t kReadingsFreshNanos = 10'000'000;
// NVML refreshes the counters at this interval, so closer samples have no useful difference.
constexpr int64_t kGpmShortestNanos = 100'000'000;

}  // namespace

class MachineMonitor::Probe final : public ResourceProbe {
 public:
  explicit Probe(MachineMonitor& monitor) : monitor_(monitor) {
    absl::MutexLock lock(&monitor.mutex_);
    ticks_ = monitor.ReadingsNow().ticks;
    gpm_ = monitor.GpmNow();
    if (monitor.allocator_ != nullptr) {
      start_ = monitor.FoldPeak();
      peak_ = start_->now;
    }
    monitor.open_.insert(this);
  }

  ~Probe() override {
    absl::MutexLock lock(&monitor_.mutex_);
    monitor_.open_.erase(this);
  }

  ResourceUsage Finish() override {
    ResourceUsage usage;
    absl::MutexLock lock(&monitor_.mutex_);
    const Readings& now = monitor_.ReadingsNow();
    usage.cpu_percent = CpuPercent(ticks_, now.ticks);
    usage.process_cpu_percent = ProcessCpuPercent(ticks_, now.ticks);
    usage.system_memory_used_bytes = now.system_memory_used_bytes;
    usage.process_memory_peak_bytes = now.process_memory_peak_bytes;
    usage.gpu_memory_used_bytes = now.gpu_memory_used_bytes;
    if (gpm_ == nullptr) usage.sm_activity_percent = now.gpu_utilization_percent;
    if (gpm_ != nullptr) usage.sm_activity_percent = monitor_.SmActivitySince(*gpm_);
    if (start_.has_value()) {
      usage.gpu_memory_start_bytes = start_->now;
      usage.gpu_memory_end_bytes = monitor_.FoldPeak().now;
      usage.gpu_memory_peak_bytes = peak_;
    }
    return usage;
  }

  // The allocator's peak of a part of this stretch.
  void Fold(uint64_t peak) { peak_ = std::max(peak_, peak); }

 private:
  MachineMonitor& monitor_;
  std::optional<CpuTicks> ticks_;
  std::shared_ptr<const TimedGpmSample> gpm_;
  std::optional<AllocatorBytes> start_;
  uint64_t peak_ = 0;  // guarded by the monitor's mutex
};

MachineMonitor::MachineMonitor(std::string gpu_name, std::unique_ptr<AllocatorProbe> allocator,
                               std::unique_ptr<NvmlDevice> nvml, const Clock& clock)
    : gpu_name_(std::move(gpu_name)),
      allocator_(std::move(allocator)),
      nvml_(std::move(nvml)),
      clock_(clock),
      cpu_name_(ReadCpuName()) {
  absl::MutexLock lock(&mutex_);
  last_ticks_ = ReadCpuTicks();
  interval_gpm_ = GpmNow();
}

const MachineMonitor::Readings& MachineMonitor::ReadingsNow() {
  const int64_t now = clock_.MonotonicNanos();
  if (readings_.has_value() && now - readings_->nanos < kReadingsFreshNanos) return *readings_;
  Readings readings{.nanos = now, .ticks = ReadCpuTicks()};
  if (const auto memory = ReadSystemMemory()) {
    readings.system_memory_used_bytes = memory->used_bytes;
  }
  if (const auto memory = ReadProcessMemory()) {
    readings.process_memory_peak_bytes = memory->peak_resident_bytes;
  }
  if (nvml_ != nullptr) {
    readings.gpu_memory_used_bytes = nvml_->ReadMemoryUsedBytes();
    // With GPM nobody asks for it.
    if (newest_gpm_ == nullptr) readings.gpu_utilization_percent = nvml_->ReadUtilizationPercent();
  }
  return readings_.emplace(readings);
}

std::shared_ptr<const MachineMonitor::TimedGpmSample> MachineMonitor::GpmNow() {
  if (nvml_ == nullptr) return nullptr;
  const int64_t now = clock_.MonotonicNanos();
  if (newest_gpm_ == nullptr || now - newest_gpm_->nanos > kGpmFreshNanos) {
    std::unique_ptr<GpmSample> sample = nvml_->TakeGpmSample();
    if (sample == nullptr) return nullptr;
    newest_gpm_ = std::make_shared<TimedGpmSample>(TimedGpmSample{now, std::move(sample)});
  }
  return newest_gpm_;
}

std::optional<double> MachineMonitor::SmActivitySince(const TimedGpmSample& from) {
  const std::shared_ptr<const TimedGpmSample> now = GpmNow();
  // Compare the times of the samples, which may be older than the ends of the probe.
  if (now == nullptr || now->nanos - from.nanos < kGpmShortestNanos) return std::nullopt;
  return nvml_->SmActivity(*from.sample, *now->sample);
}

AllocatorBytes MachineMonitor::FoldPeak() {
  const AllocatorBytes bytes = allocator_->ReadAndResetPeak();
  for (Probe* probe : open_) probe->Fold(bytes.peak);
  return bytes;
}

std::unique_ptr<ResourceProbe> MachineMonitor::StartProbe() {
  return std::make_unique<Probe>(*this);
}

std::vector<DeviceSample> MachineMonitor::Sample() {
  absl::MutexLock lock(&mutex_);
  DeviceSample cpu;
  cpu.device = "cpu";
  cpu.name = cpu_name_;
  const std::optional<CpuTicks> ticks = ReadCpuTicks();
  cpu.cpu_percent = CpuPercent(last_ticks_, ticks);
  cpu.process_cpu_percent = ProcessCpuPercent(last_ticks_, ticks);
  last_ticks_ = ticks;
  if (const auto memory = ReadSystemMemory()) {
    cpu.memory_used_bytes = memory->used_bytes;
    cpu.memory_total_bytes = memory->total_bytes;
  }
  if (const auto memory = ReadProcessMemory()) {
    cpu.process_memory_bytes = memory->resident_bytes;
    cpu.process_memory_peak_bytes = memory->peak_resident_bytes;
  }
  std::vector<DeviceSample> samples = {std::move(cpu)};
  if (gpu_name_.empty()) return samples;

  DeviceSample gpu;
  gpu.device = gpu_name_;
  if (allocator_ != nullptr) gpu.allocator_bytes = allocator_->Read().now;
  if (nvml_ != nullptr) {
    const GpuCounters counters = nvml_->Read();
    gpu.name = counters.name;
    gpu.memory_used_bytes = counters.memory_used_bytes;
    gpu.memory_total_bytes = counters.memory_total_bytes;
    gpu.power_watts = counters.power_watts;
    gpu.temperature_celsius = counters.temperature_celsius;
    gpu.sm_clock_mhz = counters.sm_clock_mhz;
    gpu.memory_clock_mhz = counters.memory_clock_mhz;
    gpu.sm_activity_percent = counters.utilization_percent;
    if (interval_gpm_ != nullptr) {
      gpu.sm_activity_percent = SmActivitySince(*interval_gpm_);
      if (gpu.sm_activity_percent.has_value()) interval_gpm_ = newest_gpm_;
    }
  }
  samples.push_back(std::move(gpu));
  return samples;
}

}  // namespace wan
