#include "engine/monitor/machine_monitor.h"

#include <algorithm>
#include <utility>

#include "absl/synchronization/mutex.h"
#include "engine/monitor/timeline_points.h"

namespace wan {
namespace {

constexpr absl::Duration kTickInterval = absl::Milliseconds(50);
// Readings of /proc that are at most this old count as current. The kernel counts CPU time in steps
// of this length.
constexpr int64_t kReadingsFreshNanos = 10'000'000;
// Means in the results of Sample() cover the last kWindowNanos. Only every fifth tick reads /proc:
// this costs more than all other readings, mainly for the memory of the control group.
constexpr int64_t kWindowNanos = 1'000'000'000;
constexpr int64_t kTicksPerWindowEntry = 5;
// A timeline accepts readings that are at most this old. Its intervals are about as long, so a
// timeline causes no additional readings.
constexpr int64_t kTimelineFreshNanos = 225'000'000;

// The figures of the machine; each may be absent.
struct Readings {
  int64_t nanos = 0;
  std::optional<CpuTicks> ticks;
  std::optional<SystemMemory> system;
  std::optional<ProcessMemory> process;
};

}  // namespace

struct MachineMonitor::State {
  State(std::string name, std::unique_ptr<AllocatorProbe> allocator_probe,
        std::unique_ptr<NvmlDevice> nvml, Clock& its_clock, ReadMemory memory)
      : gpu_name(std::move(name)),
        cpu_name(ReadCpuName()),
        allocator(std::move(allocator_probe)),
        read_memory(std::move(memory)),
        clock(its_clock) {
    if (nvml != nullptr) sampler = std::make_unique<GpuSampler>(std::move(nvml), clock);
    absl::MutexLock lock(&mutex);
    window.push_back({clock.MonotonicNanos(), ReadCpuTicks(), {}, {}});
  }

  const std::string gpu_name;
  const std::string cpu_name;
  const std::unique_ptr<AllocatorProbe> allocator;
  const ReadMemory read_memory;
  std::unique_ptr<GpuSampler> sampler;  // null if there is no NVML
  Clock& clock;
  int64_t ticks = 0;  // only the thread that ticks uses it

  absl::Mutex mutex;
  std::set<Probe*> open ABSL_GUARDED_BY(mutex);
  std::optional<Readings> newest ABSL_GUARDED_BY(mutex);
  // The readings of the last second, oldest first. The list always has at least one reading.
  std::deque<Readings> window ABSL_GUARDED_BY(mutex);

  // Held while timelines are updated, so that no timeline is destroyed meanwhile.
  absl::Mutex timelines_mutex ABSL_ACQUIRED_BEFORE(mutex);
  std::set<Timeline*> timelines ABSL_GUARDED_BY(timelines_mutex);

  void Tick();

  // Returns the last readings if they are younger than `fresh_nanos`; otherwise takes new readings.
  // New readings read four files of the kernel, which is costly because the stages of small videos
  // begin and end hundreds of times a second.
  const Readings& ReadingsNow(int64_t fresh_nanos = kReadingsFreshNanos)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    const int64_t now = clock.MonotonicNanos();
    if (newest.has_value() && now - newest->nanos < fresh_nanos) return *newest;
    return newest.emplace(Readings{now, ReadCpuTicks(), ReadSystemMemory(), FoldMemory()});
  }

  // Reads the memory of the process, and adds it to all open probes.
  std::optional<ProcessMemory> FoldMemory() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);

  // Reads the allocator, and adds its peak to all open probes: probes overlap, but the allocator
  // has only one peak. Returns nullopt if there is no allocator, or if the device is lost.
  std::optional<AllocatorBytes> FoldPeak() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  std::optional<AllocatorBytes> ReadAllocator() const;

  DeviceSample CpuSample(const Readings& now, const std::optional<CpuTicks>& since) const;
  // `usage` is the GPU's usage in the interval of the reader that asks.
  DeviceSample GpuSample(const GpuUsage& usage) const;
};

class MachineMonitor::Probe final : public ResourceProbe {
 public:
  explicit Probe(State& state) : state_(state) {
    if (state.sampler != nullptr) interval_ = state.sampler->Open();
    absl::MutexLock lock(&state.mutex);
    const Readings& now = state.ReadingsNow();
    ticks_ = now.ticks;
    if (now.process.has_value()) {
      memory_peak_ = now.process->resident_bytes;
      life_peak_before_ = now.process->peak_resident_bytes;
    }
    if (const std::optional<AllocatorBytes> bytes = state.FoldPeak()) {
      start_bytes_ = bytes->now;
      peak_ = {.peak = bytes->now};
    }
    state.open.insert(this);
  }

  ~Probe() override {
    absl::MutexLock lock(&state_.mutex);
    state_.open.erase(this);
  }

  ResourceUsage Finish() override {
    ResourceUsage usage;
    if (interval_ != nullptr) {
      usage.gpu = interval_->Usage();
      usage.sm_activity_percent = usage.gpu.sm_activity_percent;
      if (const std::optional<GpuSampler::Now> newest = state_.sampler->Newest()) {
        usage.gpu_memory_used_bytes = newest->counters.memory_used_bytes;
      }
    }
    absl::MutexLock lock(&state_.mutex);
    const Readings& now = state_.ReadingsNow();
    usage.cpu_percent = CpuPercent(ticks_, now.ticks);
    usage.process_cpu_percent = ProcessCpuPercent(ticks_, now.ticks);
    if (now.system.has_value()) usage.system_memory_used_bytes = now.system->used_bytes;
    usage.process_memory_peak_bytes = memory_peak_;
    if (!start_bytes_.has_value()) return usage;
    if (const std::optional<AllocatorBytes> end = state_.FoldPeak()) {
      usage.gpu_memory_start_bytes = start_bytes_;
      usage.gpu_memory_end_bytes = end->now;
      usage.gpu_memory_peak_bytes = peak_.peak;
      usage.gpu_memory_reserved_peak_bytes = peak_.reserved_peak;
      usage.gpu_weights_peak_bytes = peak_.weights_peak;
    }
    return usage;
  }

  // Adds a reading of the memory to this probe. The kernel reports only the peak of the process's
  // whole life. The monitor must not reset the kernel's peak, because other programs read it. If
  // the kernel's peak has grown since the probe began, it is also the probe's exact peak.
  void Fold(const ProcessMemory& memory) {
    uint64_t most = memory.resident_bytes;
    if (memory.peak_resident_bytes > life_peak_before_) most = memory.peak_resident_bytes;
    memory_peak_ = std::max(memory_peak_.value_or(0), most);
  }

  // Adds the allocator's peaks in a part of the probe's time.
  void Fold(const AllocatorBytes& bytes) {
    peak_.peak = std::max(peak_.peak, bytes.peak);
    peak_.reserved_peak = std::max(peak_.reserved_peak, bytes.reserved_peak);
    peak_.weights_peak = std::max(peak_.weights_peak, bytes.weights_peak);
  }

 private:
  State& state_;
  std::unique_ptr<GpuSampler::Interval> interval_;
  std::optional<CpuTicks> ticks_;
  std::optional<uint64_t> start_bytes_;
  // The mutex of the monitor's state guards these members.
  AllocatorBytes peak_;
  std::optional<uint64_t> memory_peak_;
  uint64_t life_peak_before_ = 0;
};

class MachineMonitor::Reader final : public DeviceReader {
 public:
  explicit Reader(State& state, int64_t fresh_nanos = kReadingsFreshNanos)
      : state_(state), fresh_nanos_(fresh_nanos) {
    if (state.sampler != nullptr) interval_ = state.sampler->Open();
    absl::MutexLock lock(&state.mutex);
    ticks_ = state.ReadingsNow(fresh_nanos).ticks;
  }

  std::vector<DeviceSample> Sample() override {
    std::vector<DeviceSample> samples;
    {
      absl::MutexLock lock(&state_.mutex);
      const Readings& now = state_.ReadingsNow(fresh_nanos_);
      samples.push_back(state_.CpuSample(now, ticks_));
      ticks_ = now.ticks;
    }
    if (state_.gpu_name.empty()) return samples;
    GpuUsage usage;
    if (interval_ != nullptr) {
      usage = interval_->Usage();
      interval_->Restart();
    }
    samples.push_back(state_.GpuSample(usage));
    return samples;
  }

 private:
  State& state_;
  const int64_t fresh_nanos_;
  std::unique_ptr<GpuSampler::Interval> interval_;
  std::optional<CpuTicks> ticks_;
};

class MachineMonitor::Timeline final : public DeviceTimeline {
 public:
  explicit Timeline(State& state) : state_(state), reader_(state, kTimelineFreshNanos) {
    start_nanos_ = state.clock.MonotonicNanos();
    start_ = state.clock.Now();
    absl::MutexLock lock(&state.timelines_mutex);
    state.timelines.insert(this);
  }

  ~Timeline() override {
    absl::MutexLock lock(&state_.timelines_mutex);
    state_.timelines.erase(this);
  }

  std::vector<TimelinePoint> Points() const override {
    absl::MutexLock lock(&mutex_);
    return points_.points();
  }

  // Ends the current point if it lasts long enough. The thread that ticks calls it.
  void Advance() {
    const int64_t now = state_.clock.MonotonicNanos();
    absl::MutexLock lock(&mutex_);
    const absl::Duration passed = absl::Nanoseconds(now - start_nanos_);
    if (passed < points_.interval()) return;
    TimelinePoint point{start_, absl::ToDoubleSeconds(passed), WithoutConstants(reader_.Sample())};
    points_.Add(std::move(point));
    start_nanos_ = now;
    start_ += passed;
  }

 private:
  State& state_;
  mutable absl::Mutex mutex_;
  Reader reader_ ABSL_GUARDED_BY(mutex_);
  int64_t start_nanos_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Time start_ ABSL_GUARDED_BY(mutex_);
  TimelinePoints points_ ABSL_GUARDED_BY(mutex_);
};

void MachineMonitor::State::Tick() {
  if (sampler != nullptr) sampler->Tick();
  {
    absl::MutexLock lock(&mutex);
    if (ticks++ % kTicksPerWindowEntry == 0) {
      window.push_back(ReadingsNow());
      const int64_t second_ago = window.back().nanos - kWindowNanos;
      while (window.size() > 2 && window[1].nanos <= second_ago) window.pop_front();
    } else if (!open.empty()) {
      FoldMemory();
    }
  }
  absl::MutexLock lock(&timelines_mutex);
  for (Timeline* const timeline : timelines) timeline->Advance();
}

std::optional<ProcessMemory> MachineMonitor::State::FoldMemory() {
  const std::optional<ProcessMemory> memory = read_memory();
  if (memory.has_value()) {
    for (Probe* probe : open) probe->Fold(*memory);
  }
  return memory;
}

std::optional<AllocatorBytes> MachineMonitor::State::FoldPeak() {
  if (allocator == nullptr) return std::nullopt;
  try {
    const AllocatorBytes bytes = allocator->ReadAndResetPeak();
    for (Probe* probe : open) probe->Fold(bytes);
    return bytes;
  } catch (...) {
    return std::nullopt;
  }
}

std::optional<AllocatorBytes> MachineMonitor::State::ReadAllocator() const {
  if (allocator == nullptr) return std::nullopt;
  try {
    return allocator->Read();
  } catch (...) {
    return std::nullopt;
  }
}

DeviceSample MachineMonitor::State::CpuSample(const Readings& now,
                                              const std::optional<CpuTicks>& since) const {
  DeviceSample cpu;
  cpu.device = "cpu";
  cpu.name = cpu_name;
  cpu.cpu_percent = CpuPercent(since, now.ticks);
  cpu.process_cpu_percent = ProcessCpuPercent(since, now.ticks);
  if (now.system.has_value()) {
    cpu.memory_used_bytes = now.system->used_bytes;
    cpu.memory_total_bytes = now.system->total_bytes;
  }
  if (now.process.has_value()) {
    cpu.process_memory_bytes = now.process->resident_bytes;
    cpu.process_memory_peak_bytes = now.process->peak_resident_bytes;
  }
  return cpu;
}

DeviceSample MachineMonitor::State::GpuSample(const GpuUsage& usage) const {
  DeviceSample gpu;
  gpu.device = gpu_name;
  if (const std::optional<AllocatorBytes> bytes = ReadAllocator()) gpu.allocator_bytes = bytes->now;
  if (sampler == nullptr) return gpu;
  const GpuFacts& facts = sampler->facts();
  gpu.name = facts.name;
  gpu.uuid = facts.uuid;
  gpu.memory_total_bytes = facts.memory_total_bytes;
  gpu.sm_activity_percent = usage.sm_activity_percent;
  gpu.sm_occupancy_percent = usage.sm_occupancy_percent;
  gpu.tensor_activity_percent = usage.tensor_activity_percent;
  gpu.dram_bandwidth_percent = usage.dram_bandwidth_percent;
  gpu.power_watts = usage.power_watts;
  gpu.sm_clock_mhz = usage.sm_clock_mhz;
  gpu.memory_clock_mhz = usage.memory_clock_mhz;
  gpu.throttle_reasons = usage.throttle_reasons;
  std::optional<GpuSampler::Now> newest = sampler->Newest();
  if (!newest.has_value()) return gpu;
  gpu.memory_used_bytes = newest->counters.memory_used_bytes;
  gpu.temperature_celsius = newest->counters.temperature_celsius;
  gpu.processes = newest->processes;
  gpu.energy_joules = newest->energy_joules;
  gpu.sm_active_seconds = newest->sm_active_seconds;
  gpu.throttled_seconds = newest->throttled_seconds;
  gpu.throttled_seconds_by_reason = std::move(newest->throttled_seconds_by_reason);
  return gpu;
}

MachineMonitor::MachineMonitor(std::string gpu_name, std::unique_ptr<AllocatorProbe> allocator,
                               std::unique_ptr<NvmlDevice> nvml, Clock& clock,
                               ReadMemory read_memory)
    : state_(std::make_shared<State>(std::move(gpu_name), std::move(allocator), std::move(nvml),
                                     clock, std::move(read_memory))) {}

MachineMonitor::~MachineMonitor() = default;

void MachineMonitor::StartSampling() {
  ticker_ =
      std::make_unique<Ticker>(state_->clock, kTickInterval, [state = state_] { state->Tick(); });
}

void MachineMonitor::Tick() { state_->Tick(); }

std::optional<GpuFacts> MachineMonitor::Gpu() const {
  if (state_->sampler == nullptr) return std::nullopt;
  return state_->sampler->facts();
}

std::unique_ptr<ResourceProbe> MachineMonitor::StartProbe() {
  return std::make_unique<Probe>(*state_);
}

std::unique_ptr<DeviceReader> MachineMonitor::StartReader() {
  return std::make_unique<Reader>(*state_);
}

std::unique_ptr<DeviceTimeline> MachineMonitor::StartTimeline() {
  return std::make_unique<Timeline>(*state_);
}

std::vector<DeviceSample> MachineMonitor::Sample() {
  std::vector<DeviceSample> samples;
  {
    absl::MutexLock lock(&state_->mutex);
    samples.push_back(state_->CpuSample(state_->ReadingsNow(), state_->window.front().ticks));
  }
  if (state_->gpu_name.empty()) return samples;
  GpuUsage usage;
  if (state_->sampler != nullptr) usage = state_->sampler->LastSecond();
  samples.push_back(state_->GpuSample(usage));
  return samples;
}

}  // namespace wan
