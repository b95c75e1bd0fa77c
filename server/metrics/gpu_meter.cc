#include "server/metrics/gpu_meter.h"

#include <utility>

namespace wan::server {
namespace {

void Add(const std::optional<double>& percent, double seconds, std::optional<double>& sum) {
  if (percent.has_value()) sum = sum.value_or(0) + *percent / 100 * seconds;
}

}  // namespace

GpuMeter::GpuMeter(std::unique_ptr<DeviceReader> reader, Clock& clock)
    : clock_(clock), reader_(std::move(reader)), read_nanos_(clock.MonotonicNanos()) {}

std::map<std::string, GpuSums> GpuMeter::Read() {
  absl::MutexLock lock(&mutex_);
  const int64_t now = clock_.MonotonicNanos();
  const absl::Duration passed = absl::Nanoseconds(now - read_nanos_);
  if (passed < kShortest) return sums_;
  read_nanos_ = now;
  const double seconds = absl::ToDoubleSeconds(passed);
  for (const DeviceSample& sample : reader_->Sample()) {
    GpuSums& sums = sums_[sample.device];
    Add(sample.tensor_activity_percent, seconds, sums.tensor_seconds);
    Add(sample.dram_bandwidth_percent, seconds, sums.dram_seconds);
  }
  return sums_;
}

}  // namespace wan::server
