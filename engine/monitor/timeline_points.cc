#include "engine/monitor/timeline_points.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>

namespace wan {
namespace {

constexpr std::optional<double> DeviceSample::*kMeans[] = {
    &DeviceSample::sm_activity_percent,     &DeviceSample::power_watts,
    &DeviceSample::temperature_celsius,     &DeviceSample::sm_clock_mhz,
    &DeviceSample::memory_clock_mhz,        &DeviceSample::cpu_percent,
    &DeviceSample::process_cpu_percent,     &DeviceSample::sm_occupancy_percent,
    &DeviceSample::tensor_activity_percent, &DeviceSample::dram_bandwidth_percent,
};

constexpr std::optional<uint64_t> DeviceSample::*kHighest[] = {
    &DeviceSample::memory_used_bytes,
    &DeviceSample::allocator_bytes,
    &DeviceSample::process_memory_bytes,
};

// Merges two points that follow each other. If only one of them has a figure, the result has that
// figure.
TimelinePoint Merged(TimelinePoint a, const TimelinePoint& b) {
  for (const auto mean : kMeans) {
    std::optional<double>& first = a.sample.*mean;
    const std::optional<double>& second = b.sample.*mean;
    if (first.has_value() && second.has_value()) {
      first = (*first * a.seconds + *second * b.seconds) / (a.seconds + b.seconds);
    } else if (second.has_value()) {
      first = second;
    }
  }
  for (const auto highest : kHighest) {
    a.sample.*highest = std::max(a.sample.*highest, b.sample.*highest);
  }
  a.sample.processes = std::max(a.sample.processes, b.sample.processes);
  std::set<std::string> reasons(a.sample.throttle_reasons.begin(), a.sample.throttle_reasons.end());
  reasons.insert(b.sample.throttle_reasons.begin(), b.sample.throttle_reasons.end());
  a.sample.throttle_reasons.assign(reasons.begin(), reasons.end());
  a.seconds += b.seconds;
  return a;
}

}  // namespace

DeviceSample WithoutConstants(const std::vector<DeviceSample>& samples) {
  const DeviceSample& cpu = samples.front();
  DeviceSample point = samples.back();
  point.cpu_percent = cpu.cpu_percent;
  point.process_cpu_percent = cpu.process_cpu_percent;
  point.process_memory_bytes = cpu.process_memory_bytes;
  point.device.clear();
  point.name.clear();
  point.uuid.clear();
  point.memory_total_bytes.reset();
  point.process_memory_peak_bytes.reset();
  point.energy_joules.reset();
  point.sm_active_seconds.reset();
  point.throttled_seconds.reset();
  point.throttled_seconds_by_reason.clear();
  return point;
}

void TimelinePoints::Add(TimelinePoint point) {
  points_.push_back(std::move(point));
  if (points_.size() < DeviceTimeline::kMostPoints) return;
  for (size_t i = 0; i < points_.size() / 2; ++i) {
    points_[i] = Merged(std::move(points_[2 * i]), points_[2 * i + 1]);
  }
  points_.resize(points_.size() / 2);
  interval_ *= 2;
}

}  // namespace wan
