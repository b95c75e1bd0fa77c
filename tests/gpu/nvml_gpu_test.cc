// The driver's counters, read as a server's threads do.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "engine/device/plugin_loader.h"
#include "engine/monitor/nvml.h"

namespace wan {
namespace {

std::unique_ptr<NvmlDevice> OpenFirst() {
  EXPECT_TRUE(LoadCudaPlugin().ok());
  const absl::StatusOr<std::string> bus_id = CudaPciBusId(0);
  EXPECT_TRUE(bus_id.ok()) << bus_id.status();
  return bus_id.ok() ? OpenNvmlDevice(*bus_id) : nullptr;
}

TEST(NvmlGpuTest, TheCardHasANameAndMemory) {
  const auto device = OpenFirst();
  ASSERT_NE(device, nullptr);
  const GpuCounters counters = device->Read();
  EXPECT_NE(device->Describe().name, "");
  EXPECT_GT(counters.memory_total_bytes.value_or(0), 0u);
  EXPECT_LE(*counters.memory_used_bytes, *counters.memory_total_bytes);
  EXPECT_GT(device->ReadEnergyJoules().value_or(1), 0) << "absent before Volta";
}

// Without our lock a driver was seen to end the process where two threads did this.
TEST(NvmlGpuTest, ManyThreadsMayTakeGpmSamples) {
  const auto device = OpenFirst();
  ASSERT_NE(device, nullptr);
  if (device->TakeGpmSample() == nullptr) GTEST_SKIP() << "the card has no GPM";
  std::atomic<int> taken = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      std::unique_ptr<GpmSample> last;
      for (int i = 0; i < 2000; ++i) {
        std::unique_ptr<GpmSample> sample = device->TakeGpmSample();
        if (sample == nullptr) continue;
        ++taken;
        if (last != nullptr) device->Between(*last, *sample);
        last = std::move(sample);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(taken, 8 * 2000);
}

}  // namespace
}  // namespace wan
