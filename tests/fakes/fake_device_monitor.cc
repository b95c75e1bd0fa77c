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

}  // namespace wan::fakes
