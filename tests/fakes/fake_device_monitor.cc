#include "tests/fakes/fake_device_monitor.h"

#include <utility>

namespace wan::fakes {
namespace {

constexpr uint64_t kGiB = uint64_t{1} << 30;

class FakeProbe final : public ResourceProbe {
 public:
  explicit FakeProbe(ResourceUsage usage) : usage_(usage) {}
  ResourceUsage Finish() override { return usage_; }

 private:
  const ResourceUsage usage_;
};

class FakeReader final : public DeviceReader {
 public:
  explicit FakeReader(std::vector<DeviceSample> samples) : samples_(std::move(samples)) {}
  std::vector<DeviceSample> Sample() override { return samples_; }

 private:
  const std::vector<DeviceSample> samples_;
};

class FakeGroupProbe final : public GroupProbe {
 public:
  explicit FakeGroupProbe(std::vector<DeviceUse> uses) : uses_(std::move(uses)) {}
  std::vector<DeviceUse> Finish() override { return uses_; }

 private:
  const std::vector<DeviceUse> uses_;
};

class FakeTimeline final : public DeviceTimeline {
 public:
  explicit FakeTimeline(std::vector<TimelinePoint> points) : points_(std::move(points)) {}
  std::vector<TimelinePoint> Points() const override { return points_; }

 private:
  const std::vector<TimelinePoint> points_;
};

}  // namespace

FakeDeviceMonitor::FakeDeviceMonitor() {
  usage_.cpu_percent = 25;
  usage_.system_memory_used_bytes = 4 * kGiB;
  usage_.process_memory_peak_bytes = kGiB;
  DeviceSample cpu;
  cpu.device = "cpu";
  cpu.name = "Fake CPU";
  cpu.cpu_percent = 25;
  cpu.memory_used_bytes = 4 * kGiB;
  cpu.memory_total_bytes = 8 * kGiB;
  cpu.process_memory_bytes = kGiB / 2;
  cpu.process_memory_peak_bytes = kGiB;
  samples_.push_back(std::move(cpu));
}

void FakeDeviceMonitor::SetUsage(const ResourceUsage& usage) {
  absl::MutexLock lock(&mutex_);
  usage_ = usage;
}

void FakeDeviceMonitor::SetSamples(std::vector<DeviceSample> samples) {
  absl::MutexLock lock(&mutex_);
  samples_ = std::move(samples);
}

std::unique_ptr<ResourceProbe> FakeDeviceMonitor::StartProbe() {
  absl::MutexLock lock(&mutex_);
  return std::make_unique<FakeProbe>(usage_);
}

std::vector<DeviceSample> FakeDeviceMonitor::Sample() {
  absl::MutexLock lock(&mutex_);
  return samples_;
}

void FakeDeviceMonitor::SetReaderSamples(std::vector<DeviceSample> samples) {
  absl::MutexLock lock(&mutex_);
  reader_samples_ = std::move(samples);
}

void FakeDeviceMonitor::SetGroupUse(std::vector<DeviceUse> uses) {
  absl::MutexLock lock(&mutex_);
  group_use_ = std::move(uses);
}

std::unique_ptr<GroupProbe> FakeDeviceMonitor::StartGroupProbe() {
  absl::MutexLock lock(&mutex_);
  return group_use_.empty() ? nullptr : std::make_unique<FakeGroupProbe>(group_use_);
}

void FakeDeviceMonitor::SetTimeline(std::vector<TimelinePoint> points) {
  absl::MutexLock lock(&mutex_);
  timeline_ = std::move(points);
}

std::unique_ptr<DeviceReader> FakeDeviceMonitor::StartReader() {
  absl::MutexLock lock(&mutex_);
  return std::make_unique<FakeReader>(reader_samples_.value_or(samples_));
}

std::unique_ptr<DeviceTimeline> FakeDeviceMonitor::StartTimeline() {
  absl::MutexLock lock(&mutex_);
  return std::make_unique<FakeTimeline>(timeline_);
}

}  // namespace wan::fakes
