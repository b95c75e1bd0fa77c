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
  std::vector<MonitoredDevice> devices;
  devices.push_back({Gpu("cuda:0", 600)});
  devices.push_back({Gpu("cuda:1", 500)});
  GroupMonitor group(std::move(devices));
  EXPECT_THAT(NamesOf(group.Sample()), ElementsAre("cpu", "cuda:0", "cuda:1"));
  const auto reader = group.StartReader();
  EXPECT_THAT(NamesOf(reader->Sample()), ElementsAre("cpu", "cuda:0", "cuda:1"));
  EXPECT_EQ(reader->Sample()[2].power_watts, 500);
  EXPECT_EQ(group.StartProbe()->Finish().gpu.power_watts, 600) << "the first device's";
}

TEST(GroupMonitorTest, MeasuresEveryDevice) {
  const auto meter = std::make_shared<ExchangeMeter>();
  std::vector<MonitoredDevice> devices;
  devices.push_back({Gpu("cuda:0", 600)});
  devices.push_back({Gpu("cuda:1", 500), meter});
  GroupMonitor group(std::move(devices));
  meter->CountSent(1000);
  meter->CountWait([] { return 4; });
  const auto probe = group.StartGroupProbe();
  meter->CountSent(50);
  meter->CountWait([] { return 0.25; });
  const std::vector<DeviceUse> uses = probe->Finish();
  ASSERT_EQ(uses.size(), 2u);
  EXPECT_EQ(uses[0].device, "cuda:0");
  EXPECT_EQ(uses[0].usage.gpu.power_watts, 600);
  EXPECT_EQ(uses[0].exchanged_bytes, std::nullopt) << "nobody counts it";
  EXPECT_EQ(uses[1].device, "cuda:1");
  EXPECT_EQ(uses[1].usage.gpu.power_watts, 500);
  EXPECT_EQ(uses[1].exchanged_bytes, 50u);
  EXPECT_EQ(uses[1].exchange_seconds, 0.25);
}

TEST(GroupMonitorTest, RanksOfTheCpuAreDevicesToo) {
  std::vector<MonitoredDevice> devices;
  for (int rank = 0; rank < 3; ++rank) {
    devices.push_back({std::make_unique<fakes::FakeDeviceMonitor>()});
  }
  GroupMonitor group(std::move(devices));
  EXPECT_THAT(NamesOf(group.Sample()), ElementsAre("cpu"));
  const std::vector<DeviceUse> uses = group.StartGroupProbe()->Finish();
  ASSERT_EQ(uses.size(), 3u);
  EXPECT_EQ(uses[2].device, "cpu");
  EXPECT_EQ(uses[2].name, "Fake CPU");
}

}  // namespace
}  // namespace wan
