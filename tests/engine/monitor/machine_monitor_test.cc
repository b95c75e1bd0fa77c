#include "engine/monitor/machine_monitor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "absl/time/time.h"
#include "tests/fakes/fake_clock.h"

namespace wan {
namespace {

// An allocator whose use the test sets.
class FakeAllocator final : public AllocatorProbe {
 public:
  void Use(uint64_t bytes) {
    now_ = bytes;
    peak_ = std::max(peak_, bytes);
  }
  AllocatorBytes Read() override { return {now_, peak_}; }
  AllocatorBytes ReadAndResetPeak() override {
    const AllocatorBytes bytes = Read();
    peak_ = now_;
    return bytes;
  }

 private:
  uint64_t now_ = 0;
  uint64_t peak_ = 0;
};

class FakeGpmSample final : public GpmSample {
 public:
  explicit FakeGpmSample(int number) : number(number) {}
  const int number;
};

// SM activity is ten times the number of samples between.
class FakeNvml final : public NvmlDevice {
 public:
  explicit FakeNvml(bool has_gpm) : has_gpm_(has_gpm) {}

  uint64_t memory_used = 500;
  mutable uint64_t memory_reads = 0;

  GpuCounters Read() const override {
    GpuCounters counters;
    counters.name = "Fake GPU";
    counters.memory_used_bytes = 500;
    counters.memory_total_bytes = 1000;
    counters.utilization_percent = 77;
    return counters;
  }
  std::optional<uint64_t> ReadMemoryUsedBytes() const override {
    ++memory_reads;
    return memory_used;
  }
  std::optional<double> ReadUtilizationPercent() const override { return 77; }
  std::unique_ptr<GpmSample> TakeGpmSample() const override {
    if (!has_gpm_) return nullptr;
    return std::make_unique<FakeGpmSample>(++taken_);
  }
  std::optional<double> SmActivity(const GpmSample& from, const GpmSample& to) const override {
    return 10.0 * (static_cast<const FakeGpmSample&>(to).number -
                   static_cast<const FakeGpmSample&>(from).number);
  }

 private:
  const bool has_gpm_;
  mutable int taken_ = 0;
};

TEST(MachineMonitorTest, WithoutAGpuItsFiguresAreAbsent) {
  MachineMonitor monitor("", nullptr, nullptr);
  const ResourceUsage usage = monitor.StartProbe()->Finish();
  EXPECT_TRUE(usage.system_memory_used_bytes.has_value());
  EXPECT_TRUE(usage.process_memory_peak_bytes.has_value());
  EXPECT_FALSE(usage.gpu_memory_start_bytes.has_value());
  EXPECT_FALSE(usage.gpu_memory_peak_bytes.has_value());
  EXPECT_FALSE(usage.gpu_memory_used_bytes.has_value());
  EXPECT_FALSE(usage.sm_activity_percent.has_value());
  const std::vector<DeviceSample> samples = monitor.Sample();
  ASSERT_EQ(samples.size(), 1u);
  EXPECT_EQ(samples[0].device, "cpu");
  EXPECT_FALSE(samples[0].power_watts.has_value());
}

TEST(MachineMonitorTest, NestedStretchesEachHaveTheirOwnPeak) {
  auto owned = std::make_unique<FakeAllocator>();
  FakeAllocator* const allocator = owned.get();
  MachineMonitor monitor("cuda:0", std::move(owned), nullptr);
  allocator->Use(10);
  const auto outer = monitor.StartProbe();
  allocator->Use(90);
  allocator->Use(20);
  const auto inner = monitor.StartProbe();
  allocator->Use(50);
  allocator->Use(30);
  const ResourceUsage inner_usage = inner->Finish();
  allocator->Use(40);
  const ResourceUsage outer_usage = outer->Finish();
  EXPECT_EQ(inner_usage.gpu_memory_start_bytes, 20u);
  EXPECT_EQ(inner_usage.gpu_memory_end_bytes, 30u);
  EXPECT_EQ(inner_usage.gpu_memory_peak_bytes, 50u);
  EXPECT_EQ(outer_usage.gpu_memory_start_bytes, 10u);
  EXPECT_EQ(outer_usage.gpu_memory_end_bytes, 40u);
  EXPECT_EQ(outer_usage.gpu_memory_peak_bytes, 90u);
}

TEST(MachineMonitorTest, SmActivityIsTheStretchsOwn) {
  fakes::FakeClock clock;
  MachineMonitor monitor("cuda:0", nullptr, std::make_unique<FakeNvml>(true), clock);
  clock.Advance(absl::Milliseconds(30));
  const auto outer = monitor.StartProbe();
  clock.Advance(absl::Milliseconds(30));
  const auto inner = monitor.StartProbe();
  clock.Advance(absl::Milliseconds(100));
  EXPECT_EQ(inner->Finish().sm_activity_percent, 10.0);
  clock.Advance(absl::Milliseconds(100));
  EXPECT_EQ(outer->Finish().sm_activity_percent, 30.0);
}

TEST(MachineMonitorTest, OfAShortStretchTheSmActivityIsUnknown) {
  fakes::FakeClock clock;
  MachineMonitor monitor("cuda:0", nullptr, std::make_unique<FakeNvml>(true), clock);
  const auto stretch = monitor.StartProbe();
  clock.Advance(absl::Milliseconds(99));
  const ResourceUsage usage = stretch->Finish();
  EXPECT_FALSE(usage.sm_activity_percent.has_value());
  EXPECT_EQ(usage.gpu_memory_used_bytes, 500u);
}

TEST(MachineMonitorTest, SamplesThatAreTooCloseAreNotCompared) {
  fakes::FakeClock clock;
  MachineMonitor monitor("cuda:0", nullptr, std::make_unique<FakeNvml>(true), clock);
  const auto stretch = monitor.StartProbe();
  clock.Advance(absl::Milliseconds(80));
  const auto other = monitor.StartProbe();
  clock.Advance(absl::Milliseconds(20));
  EXPECT_FALSE(stretch->Finish().sm_activity_percent.has_value()) << "the last is 80 ms away";
}

TEST(MachineMonitorTest, ManyStretchesShareAFewGpmSamples) {
  fakes::FakeClock clock;
  MachineMonitor monitor("cuda:0", nullptr, std::make_unique<FakeNvml>(true), clock);
  const auto whole = monitor.StartProbe();
  for (int i = 0; i < 1000; ++i) {
    monitor.StartProbe()->Finish();
    clock.Advance(absl::Milliseconds(1));
  }
  // One at the start, then one every 26 ms.
  EXPECT_EQ(whole->Finish().sm_activity_percent, 10.0 * 38);
}

TEST(MachineMonitorTest, ManyStretchesShareAReadingOfTheMachine) {
  fakes::FakeClock clock;
  auto owned = std::make_unique<FakeNvml>(true);
  FakeNvml& nvml = *owned;
  MachineMonitor monitor("cuda:0", nullptr, std::move(owned), clock);
  ResourceUsage last;
  for (int i = 0; i < 100; ++i) {
    last = monitor.StartProbe()->Finish();
    clock.Advance(absl::Milliseconds(1));
  }
  EXPECT_EQ(nvml.memory_reads, 10u) << "one in 10 ms";
  EXPECT_EQ(last.gpu_memory_used_bytes, 500u);
  nvml.memory_used = 600;
  EXPECT_EQ(monitor.StartProbe()->Finish().gpu_memory_used_bytes, 600u);
}

TEST(MachineMonitorTest, SmActivityOfTheDeviceIsThatSinceTheSampleBefore) {
  fakes::FakeClock clock;
  MachineMonitor monitor("cuda:0", nullptr, std::make_unique<FakeNvml>(true), clock);
  EXPECT_FALSE(monitor.Sample()[1].sm_activity_percent.has_value());
  clock.Advance(absl::Seconds(5));
  EXPECT_EQ(monitor.Sample()[1].sm_activity_percent, 10.0);
  clock.Advance(absl::Seconds(5));
  EXPECT_EQ(monitor.Sample()[1].sm_activity_percent, 10.0);
}

TEST(MachineMonitorTest, WithoutGpmUtilisationStandsIn) {
  MachineMonitor monitor("cuda:0", nullptr, std::make_unique<FakeNvml>(false));
  const ResourceUsage usage = monitor.StartProbe()->Finish();
  EXPECT_EQ(usage.sm_activity_percent, 77.0);
  EXPECT_EQ(usage.gpu_memory_used_bytes, 500u);
  const std::vector<DeviceSample> samples = monitor.Sample();
  ASSERT_EQ(samples.size(), 2u);
  EXPECT_EQ(samples[1].name, "Fake GPU");
  EXPECT_EQ(samples[1].sm_activity_percent, 77.0);
}

TEST(MachineMonitorTest, ADroppedStretchIsForgotten) {
  auto owned = std::make_unique<FakeAllocator>();
  FakeAllocator* const allocator = owned.get();
  MachineMonitor monitor("cuda:0", std::move(owned), nullptr);
  monitor.StartProbe().reset();
  allocator->Use(10);
  // Folding the peak into the dropped probe would write to freed memory.
  EXPECT_EQ(monitor.StartProbe()->Finish().gpu_memory_start_bytes, 10u);
}

}  // namespace
}  // namespace wan
