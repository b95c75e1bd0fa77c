#include "engine/monitor/group_monitor.h"

#include <utility>

namespace wan {
namespace {

// Appends the samples of one device to `all`. The first sample, the CPU's, is appended only if
// `all` is empty, because all devices share the CPU.
void Append(std::vector<DeviceSample> samples, std::vector<DeviceSample>& all) {
  for (size_t i = all.empty() ? 0 : 1; i < samples.size(); ++i) {
    all.push_back(std::move(samples[i]));
  }
}

class GroupReader final : public DeviceReader {
 public:
  explicit GroupReader(std::vector<std::unique_ptr<DeviceReader>> readers)
      : readers_(std::move(readers)) {}
  std::vector<DeviceSample> Sample() override {
    std::vector<DeviceSample> all;
    for (const auto& reader : readers_) Append(reader->Sample(), all);
    return all;
  }

 private:
  const std::vector<std::unique_ptr<DeviceReader>> readers_;
};

class AllDevicesProbe final : public GroupProbe {
 public:
  explicit AllDevicesProbe(const std::vector<MonitoredDevice>& devices) : devices_(devices) {
    for (const MonitoredDevice& device : devices) {
      probes_.push_back(device.monitor->StartProbe());
      begin_.push_back(device.exchanges == nullptr ? Exchanged() : device.exchanges->Read());
    }
  }

  std::vector<DeviceUse> Finish() override {
    std::vector<DeviceUse> uses;
    for (size_t rank = 0; rank < devices_.size(); ++rank) {
      const DeviceSample seen = std::move(devices_[rank].monitor->Sample().back());
      DeviceUse& use = uses.emplace_back(DeviceUse{seen.device, seen.name, seen.uuid});
      use.usage = probes_[rank]->Finish();
      ExchangeMeter* const meter = devices_[rank].exchanges.get();
      if (meter == nullptr) continue;
      const Exchanged end = meter->Read();
      use.exchanged_bytes = end.sent_bytes - begin_[rank].sent_bytes;
      use.exchange_seconds = end.waited_seconds - begin_[rank].waited_seconds;
    }
    return uses;
  }

 private:
  const std::vector<MonitoredDevice>& devices_;
  std::vector<std::unique_ptr<ResourceProbe>> probes_;
  std::vector<Exchanged> begin_;
};

}  // namespace

GroupMonitor::GroupMonitor(std::vector<MonitoredDevice> devices) : devices_(std::move(devices)) {}

std::unique_ptr<ResourceProbe> GroupMonitor::StartProbe() {
  return devices_[0].monitor->StartProbe();
}

std::unique_ptr<DeviceTimeline> GroupMonitor::StartTimeline() {
  return devices_[0].monitor->StartTimeline();
}

std::unique_ptr<GroupProbe> GroupMonitor::StartGroupProbe() {
  return std::make_unique<AllDevicesProbe>(devices_);
}

std::vector<DeviceSample> GroupMonitor::Sample() {
  std::vector<DeviceSample> all;
  for (const MonitoredDevice& device : devices_) Append(device.monitor->Sample(), all);
  return all;
}

std::unique_ptr<DeviceReader> GroupMonitor::StartReader() {
  std::vector<std::unique_ptr<DeviceReader>> readers;
  for (const MonitoredDevice& device : devices_) readers.push_back(device.monitor->StartReader());
  return std::make_unique<GroupReader>(std::move(readers));
}

}  // namespace wan
