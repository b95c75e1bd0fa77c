#include "engine/monitor/group_monitor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/fakes/fake_device_monitor.h"

namespace wan {
namespace {

using testing::ElementsAre;

std::unique_ptr<fakes::FakeDeviceMonitor> Gpu(const std::string& name, double watts) {
  auto monitor = std::make_unique<fakes::FakeDeviceMonitor>();
  DeviceSample cpu;
  cpu.device = "cpu";
  DeviceSample gpu;
  gpu.device = name;
  gpu.power_watts = watts;
  monitor->SetSamples({cpu, gpu});
  ResourceUsage usage;
  usage.gpu.power_watts = watts;
  monitor->SetUsage(usage);
  return monitor;
}

std::vector<std::string> NamesOf(const std::vector<DeviceSample>& samples) {
  std::vector<std::string> names;
  for (const DeviceSample& sample : samples) names.push_back(sample.device);
  return names;
}

TEST(GroupMonitorTest, SeesTheCpuOnceAndEveryDevice) {
  std::vector<std::unique_ptr<DeviceMonitor>> devices;
  devices.push_back(Gpu("cuda:0", 600));
  devices.push_back(Gpu("cuda:1", 500));
  GroupMonitor group(std::move(devices));
  EXPECT_THAT(NamesOf(group.Sample()), ElementsAre("cpu", "cuda:0", "cuda:1"));
  const auto reader = group.StartReader();
  EXPECT_THAT(NamesOf(reader->Sample()), ElementsAre("cpu", "cuda:0", "cuda:1"));
  EXPECT_EQ(reader->Sample()[2].power_watts, 500);
  EXPECT_EQ(group.StartProbe()->Finish().gpu.power_watts, 600) << "the first device's";
}

}  // namespace
}  // namespace wan
