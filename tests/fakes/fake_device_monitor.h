// A device monitor that reports what a test has set.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "engine/api/device_monitor.h"

namespace wan::fakes {

// Thread-safe. At first it reports one device, "cpu", with 25 % CPU, 4 GiB of 8 GiB in use, and no
// GPU figures.
class FakeDeviceMonitor final : public DeviceMonitor {
 public:
  FakeDeviceMonitor();

  // Sets what every later probe and sample reports.
  void SetUsage(const ResourceUsage& usage);
  void SetSamples(std::vector<DeviceSample> samples);
  // Sets what readers report that are started from now on; at first they report what Sample() does.
  void SetReaderSamples(std::vector<DeviceSample> samples);
  // Sets what each device of a group has done, for group probes that are started from now on; at
  // first it is empty, as for a monitor of one device.
  void SetGroupUse(std::vector<DeviceUse> uses);
  // Sets the points of the timelines that are started from now on; at first they have none.
  void SetTimeline(std::vector<TimelinePoint> points);

  std::unique_ptr<ResourceProbe> StartProbe() override;
  std::unique_ptr<GroupProbe> StartGroupProbe() override;
  std::vector<DeviceSample> Sample() override;
  std::unique_ptr<DeviceReader> StartReader() override;
  std::unique_ptr<DeviceTimeline> StartTimeline() override;

 private:
  absl::Mutex mutex_;
  ResourceUsage usage_ ABSL_GUARDED_BY(mutex_);
  std::vector<DeviceSample> samples_ ABSL_GUARDED_BY(mutex_);
  std::optional<std::vector<DeviceSample>> reader_samples_ ABSL_GUARDED_BY(mutex_);
  std::vector<DeviceUse> group_use_ ABSL_GUARDED_BY(mutex_);
  std::vector<TimelinePoint> timeline_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace wan::fakes
