#include "engine/monitor/gpu_sampler.h"

#include <algorithm>
#include <utility>

namespace wan {
namespace {

// NVML updates GPM's counters at this interval, so samples that are closer would hardly differ.
constexpr int64_t kGpmShortestNanos = 100'000'000;
// A thread that ticks 20 times a second is never exactly on time, so intervals may be shorter by
// this much.
constexpr int64_t kTickTolerance = 10'000'000;
// The sampler counts processes seldom, because counting costs more than reading a counter, and the
// number rarely changes.
constexpr int64_t kTicksPerCount = 20;
// The energy is read seldom, because reading takes the driver milliseconds, and other calls may
// wait meanwhile.
constexpr int64_t kTicksPerEnergy = 10;
constexpr int64_t kWindowNanos = 1'000'000'000;
// The sampler reports a mean only if it knows the figure for at least this share of the interval.
constexpr double kLeastCoverage = 0.5;

double Seconds(int64_t nanos) { return static_cast<double>(nanos) * 1e-9; }

// Returns the seconds of the slice that come after `begin_nanos`.
template <typename AnySlice>
double SecondsBehind(const AnySlice& slice, int64_t begin_nanos) {
  return Seconds(slice.to_nanos - std::max(slice.from_nanos, begin_nanos));
}

void RaiseTo(std::optional<double>& highest, const std::optional<double>& value) {
  if (value.has_value()) highest = std::max(highest.value_or(*value), *value);
}

void LowerTo(std::optional<double>& lowest, const std::optional<double>& value) {
  if (value.has_value()) lowest = std::min(lowest.value_or(*value), *value);
}

template <typename AnySlice>
void DropOld(std::deque<AnySlice>& slices, int64_t now) {
  while (!slices.empty() && slices.front().to_nanos <= now - kWindowNanos) slices.pop_front();
}

std::optional<double> HeldDown(const GpuCounters& counters) {
  if (!counters.throttle_reasons.has_value()) return std::nullopt;
  return counters.throttle_reasons->empty() ? 0 : 1;
}

// Returns the SM activity in the slice, from means that NVML itself computed.
std::optional<double> ActiveShare(const GpuCounters& counters) {
  if (!counters.utilization_percent.has_value()) return std::nullopt;
  return *counters.utilization_percent / 100;
}

void AddTo(std::optional<double>& sum, const std::optional<double>& value) {
  if (value.has_value()) sum = sum.value_or(0) + *value;
}

}  // namespace

void GpuIntegrals::Integral::Add(const std::optional<double>& value, double for_seconds) {
  if (!value.has_value()) return;
  sum += *value * for_seconds;
  seconds += for_seconds;
}

std::optional<double> GpuIntegrals::Integral::MeanOver(double stretch_seconds) const {
  if (seconds <= 0 || seconds < kLeastCoverage * stretch_seconds) return std::nullopt;
  return sum / seconds;
}

void GpuIntegrals::Add(const Slice& slice, int64_t begin_nanos) {
  const double seconds = SecondsBehind(slice, begin_nanos);
  if (seconds <= 0) return;
  const GpuCounters& counters = slice.counters;
  utilization_.Add(counters.utilization_percent, seconds);
  power_.Add(counters.power_watts, seconds);
  sm_clock_.Add(counters.sm_clock_mhz, seconds);
  memory_clock_.Add(counters.memory_clock_mhz, seconds);
  throttled_.Add(HeldDown(counters), seconds);
  RaiseTo(power_peak_, counters.power_watts);
  LowerTo(sm_clock_min_, counters.sm_clock_mhz);
  RaiseTo(temperature_peak_, counters.temperature_celsius);
  if (counters.throttle_reasons.has_value()) {
    reasons_.insert(counters.throttle_reasons->begin(), counters.throttle_reasons->end());
  }
  if (slice.processes.has_value()) {
    processes_ = std::max(processes_.value_or(0), *slice.processes);
  }
}

void GpuIntegrals::Add(const EnergySlice& slice, int64_t begin_nanos) {
  const double seconds = SecondsBehind(slice, begin_nanos);
  if (seconds <= 0) return;
  energy_.Add(slice.joules / Seconds(slice.to_nanos - slice.from_nanos), seconds);
}

void GpuIntegrals::Add(const GpmSlice& slice, int64_t begin_nanos) {
  const double seconds = SecondsBehind(slice, begin_nanos);
  if (seconds <= 0) return;
  sm_activity_.Add(slice.metrics.sm_activity_percent, seconds);
  sm_occupancy_.Add(slice.metrics.sm_occupancy_percent, seconds);
  tensor_activity_.Add(slice.metrics.tensor_activity_percent, seconds);
  dram_bandwidth_.Add(slice.metrics.dram_bandwidth_percent, seconds);
}

GpuUsage GpuIntegrals::Over(double seconds, bool has_gpm) const {
  GpuUsage usage;
  if (!has_gpm) usage.sm_activity_percent = utilization_.MeanOver(seconds);
  if (has_gpm && seconds >= Seconds(kGpmShortestNanos)) {
    usage.sm_activity_percent = sm_activity_.MeanOver(seconds);
    usage.sm_occupancy_percent = sm_occupancy_.MeanOver(seconds);
    usage.tensor_activity_percent = tensor_activity_.MeanOver(seconds);
    usage.dram_bandwidth_percent = dram_bandwidth_.MeanOver(seconds);
  }
  const std::optional<double> told_power = power_.MeanOver(seconds);
  if (told_power.has_value()) usage.power_peak_watts = power_peak_;
  // Prefer the energy counter. The driver's power is a mean over the last second, so in the first
  // second of work it is half the real power (tests/engine/monitor/data). The code assumes that the
  // part of the interval that no slice covers yet had the mean power of the rest.
  const std::optional<double> drawn_power = energy_.MeanOver(seconds);
  usage.power_watts = drawn_power.has_value() ? drawn_power : told_power;
  if (usage.power_watts.has_value()) usage.energy_joules = *usage.power_watts * seconds;
  usage.sm_clock_mhz = sm_clock_.MeanOver(seconds);
  if (usage.sm_clock_mhz.has_value()) {
    usage.sm_clock_min_mhz = sm_clock_min_;
    usage.temperature_peak_celsius = temperature_peak_;
  }
  usage.memory_clock_mhz = memory_clock_.MeanOver(seconds);
  if (const std::optional<double> share = throttled_.MeanOver(seconds)) {
    usage.throttled_seconds = *share * seconds;
    usage.throttle_reasons.assign(reasons_.begin(), reasons_.end());
  }
  usage.processes = processes_;
  return usage;
}

GpuSampler::GpuSampler(std::unique_ptr<NvmlDevice> nvml, const Clock& clock)
    : nvml_(std::move(nvml)), clock_(clock), facts_(nvml_->Describe()) {}

std::optional<GpuIntegrals::GpmSlice> GpuSampler::TickGpm() {
  if (!facts_.has_gpm) return std::nullopt;
  const int64_t now = clock_.MonotonicNanos();
  if (gpm_.sample != nullptr && now - gpm_.nanos < kGpmShortestNanos - kTickTolerance) {
    return std::nullopt;
  }
  TimedGpm taken{now, nvml_->TakeGpmSample()};
  if (taken.sample == nullptr) return std::nullopt;
  std::optional<GpuIntegrals::GpmSlice> slice;
  if (gpm_.sample != nullptr) {
    slice = {gpm_.nanos, taken.nanos, nvml_->Between(*gpm_.sample, *taken.sample)};
  }
  gpm_ = std::move(taken);
  return slice;
}

std::optional<GpuIntegrals::EnergySlice> GpuSampler::TickEnergy() {
  if (ticks_ % kTicksPerEnergy != 0) return std::nullopt;
  const std::optional<double> energy = nvml_->ReadEnergyJoules();
  const int64_t now = clock_.MonotonicNanos();
  std::optional<GpuIntegrals::EnergySlice> slice;
  if (energy.has_value() && last_energy_.has_value()) {
    slice = {last_energy_nanos_, now, *energy - *last_energy_};
  }
  last_energy_ = energy;
  last_energy_nanos_ = now;
  return slice;
}

void GpuSampler::Tick() {
  GpuIntegrals::Slice slice{.from_nanos = last_nanos_, .counters = nvml_->Read()};
  if (ticks_ % kTicksPerCount == 0) processes_ = nvml_->CountProcesses();
  slice.processes = processes_;
  const std::optional<GpuIntegrals::GpmSlice> gpm = TickGpm();
  const std::optional<GpuIntegrals::EnergySlice> energy = TickEnergy();
  const bool has_energy = last_energy_.has_value();
  slice.to_nanos = clock_.MonotonicNanos();
  last_nanos_ = slice.to_nanos;
  const bool first = ticks_++ == 0;

  absl::MutexLock lock(&mutex_);
  Now& newest = newest_.has_value() ? *newest_ : newest_.emplace();
  newest.counters = slice.counters;
  newest.processes = slice.processes;
  newest_nanos_ = slice.to_nanos;
  if (!first) Accumulate(slice, has_energy);  // nothing is known before the first reading
  if (energy.has_value()) Accumulate(*energy);
  if (gpm.has_value()) Accumulate(*gpm);
}

void GpuSampler::Accumulate(const GpuIntegrals::Slice& slice, bool has_energy) {
  for (Interval* const interval : open_) interval->integrals_.Add(slice, interval->begin_nanos_);
  slices_.push_back(slice);
  DropOld(slices_, slice.to_nanos);

  const double seconds = Seconds(slice.to_nanos - slice.from_nanos);
  const GpuCounters& counters = slice.counters;
  if (!has_energy && counters.power_watts.has_value()) {
    AddTo(newest_->energy_joules, *counters.power_watts * seconds);
  }
  if (const std::optional<double> held = HeldDown(counters)) {
    AddTo(newest_->throttled_seconds, *held * seconds);
    for (const std::string& reason : *counters.throttle_reasons) {
      newest_->throttled_seconds_by_reason[reason] += seconds;
    }
  }
  if (facts_.has_gpm) return;
  if (const std::optional<double> share = ActiveShare(counters)) {
    AddTo(newest_->sm_active_seconds, *share * seconds);
  }
}

void GpuSampler::Accumulate(const GpuIntegrals::EnergySlice& slice) {
  for (Interval* const interval : open_) interval->integrals_.Add(slice, interval->begin_nanos_);
  energy_slices_.push_back(slice);
  DropOld(energy_slices_, slice.to_nanos);
  AddTo(newest_->energy_joules, slice.joules);
}

void GpuSampler::Accumulate(const GpuIntegrals::GpmSlice& slice) {
  for (Interval* const interval : open_) interval->integrals_.Add(slice, interval->begin_nanos_);
  gpm_slices_.push_back(slice);
  DropOld(gpm_slices_, slice.to_nanos);
  if (slice.metrics.sm_activity_percent.has_value()) {
    AddTo(newest_->sm_active_seconds,
          *slice.metrics.sm_activity_percent / 100 * Seconds(slice.to_nanos - slice.from_nanos));
  }
}

std::unique_ptr<GpuSampler::Interval> GpuSampler::Open() {
  std::unique_ptr<Interval> interval(new Interval(*this));
  absl::MutexLock lock(&mutex_);
  interval->begin_nanos_ = clock_.MonotonicNanos();
  open_.insert(interval.get());
  return interval;
}

GpuSampler::Interval::~Interval() {
  absl::MutexLock lock(&sampler_.mutex_);
  sampler_.open_.erase(this);
}

GpuUsage GpuSampler::Interval::Usage() const {
  absl::MutexLock lock(&sampler_.mutex_);
  return integrals_.Over(Seconds(sampler_.clock_.MonotonicNanos() - begin_nanos_),
                         sampler_.facts_.has_gpm);
}

void GpuSampler::Interval::Restart() {
  absl::MutexLock lock(&sampler_.mutex_);
  begin_nanos_ = sampler_.clock_.MonotonicNanos();
  integrals_ = GpuIntegrals();
}

std::optional<GpuSampler::Now> GpuSampler::Newest() const {
  absl::MutexLock lock(&mutex_);
  if (clock_.MonotonicNanos() - newest_nanos_ > kStaleNanos) return std::nullopt;
  return newest_;
}

GpuUsage GpuSampler::LastSecond() const {
  absl::MutexLock lock(&mutex_);
  const int64_t now = clock_.MonotonicNanos();
  if (now - newest_nanos_ > kStaleNanos) return {};
  GpuIntegrals integrals;
  int64_t begin = now - kWindowNanos;
  // Shortly after the start, the readings cover less than a second.
  if (!slices_.empty()) begin = std::max(begin, slices_.front().from_nanos);
  for (const GpuIntegrals::Slice& slice : slices_) integrals.Add(slice, begin);
  for (const GpuIntegrals::EnergySlice& slice : energy_slices_) integrals.Add(slice, begin);
  for (const GpuIntegrals::GpmSlice& slice : gpm_slices_) integrals.Add(slice, begin);
  return integrals.Over(Seconds(now - begin), facts_.has_gpm);
}

}  // namespace wan
