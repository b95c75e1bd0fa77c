#include "engine/monitor/machine_monitor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "absl/time/time.h"
#include "tests/engine/monitor/scripted_nvml.h"
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
  AllocatorBytes Read() override { return {now_, peak_, 2 * peak_, peak_ / 2}; }
  AllocatorBytes ReadAndResetPeak() override {
    const AllocatorBytes bytes = Read();
    peak_ = now_;
    return bytes;
  }

 private:
  uint64_t now_ = 0;
  uint64_t peak_ = 0;
};

// A monitor of a GPU, and the time. Every tick finds the card at 77 % and 400 W.
class MonitoredGpu {
 public:
  explicit MonitoredGpu(bool has_gpm = true) {
    auto owned = std::make_unique<ScriptedNvml>(has_gpm);
    nvml = owned.get();
    counters.memory_used_bytes = 500;
    counters.utilization_percent = 77;
    counters.power_watts = 400;
    nvml->Set(counters);
    monitor = std::make_unique<MachineMonitor>("cuda:0", nullptr, std::move(owned), clock);
    monitor->Tick();
  }

  void Pass(absl::Duration time, double sm_activity = 77) {
    for (absl::Duration passed; passed < time; passed += absl::Milliseconds(50)) {
      nvml->Set(counters);
      nvml->Pass({sm_activity, 30, 20, 10}, 0.05);
      clock.Advance(absl::Milliseconds(50));
      monitor->Tick();
    }
  }

  fakes::FakeClock clock;
  GpuCounters counters;
  ScriptedNvml* nvml;
  std::unique_ptr<MachineMonitor> monitor;
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
  EXPECT_EQ(inner_usage.gpu_memory_reserved_peak_bytes, 100u);
  EXPECT_EQ(outer_usage.gpu_memory_reserved_peak_bytes, 180u);
  EXPECT_EQ(inner_usage.gpu_weights_peak_bytes, 25u);
  EXPECT_EQ(outer_usage.gpu_weights_peak_bytes, 45u);
}

// The process' memory, which a test sets; the kernel keeps the peak of its life.
class ScriptedMemory {
 public:
  void Use(uint64_t bytes) {
    memory_.resident_bytes = bytes;
    memory_.peak_resident_bytes = std::max(memory_.peak_resident_bytes, bytes);
  }
  MachineMonitor::ReadMemory Reader() {
    return [this] { return memory_; };
  }

 private:
  ProcessMemory memory_;
};

TEST(MachineMonitorTest, AStretchHasItsOwnPeakOfTheProcessMemory) {
  fakes::FakeClock clock;
  ScriptedMemory memory;
  MachineMonitor monitor("", nullptr, nullptr, clock, memory.Reader());
  const auto pass = [&] {
    clock.Advance(absl::Milliseconds(50));
    monitor.Tick();
  };
  memory.Use(10);
  pass();
  const auto large = monitor.StartProbe();
  // Between two samples, but the process had never held so much.
  memory.Use(900);
  memory.Use(300);
  pass();
  memory.Use(100);
  pass();
  EXPECT_EQ(large->Finish().process_memory_peak_bytes, 900u);

  const auto outer = monitor.StartProbe();
  memory.Use(400);
  pass();
  memory.Use(200);
  pass();
  const auto inner = monitor.StartProbe();
  memory.Use(250);
  pass();
  memory.Use(150);
  pass();
  EXPECT_EQ(inner->Finish().process_memory_peak_bytes, 250u);
  EXPECT_EQ(outer->Finish().process_memory_peak_bytes, 400u);
  EXPECT_EQ(monitor.Sample()[0].process_memory_peak_bytes, 900u) << "of its life";
}

TEST(MachineMonitorTest, WithoutTheKernelsFilesTheProcessMemoryIsAbsent) {
  fakes::FakeClock clock;
  MachineMonitor monitor("", nullptr, nullptr, clock, [] { return std::nullopt; });
  EXPECT_EQ(monitor.StartProbe()->Finish().process_memory_peak_bytes, std::nullopt);
}

TEST(MachineMonitorTest, SmActivityIsTheStretchsOwn) {
  MonitoredGpu gpu;
  const auto outer = gpu.monitor->StartProbe();
  gpu.Pass(absl::Seconds(1), /*sm_activity=*/0);
  const auto inner = gpu.monitor->StartProbe();
  gpu.Pass(absl::Seconds(1), /*sm_activity=*/100);
  const ResourceUsage inner_usage = inner->Finish();
  const ResourceUsage outer_usage = outer->Finish();
  EXPECT_NEAR(inner_usage.sm_activity_percent.value_or(0), 100, 1e-6);
  EXPECT_NEAR(outer_usage.sm_activity_percent.value_or(0), 50, 1e-6);
  EXPECT_NEAR(inner_usage.gpu.power_watts.value_or(0), 400, 1e-6);
  EXPECT_NEAR(outer_usage.gpu.energy_joules.value_or(0), 800, 1e-6);
  EXPECT_EQ(outer_usage.gpu_memory_used_bytes, 500u);
}

TEST(MachineMonitorTest, OfAShortStretchTheSmActivityIsUnknown) {
  MonitoredGpu gpu;
  const auto stretch = gpu.monitor->StartProbe();
  gpu.Pass(absl::Milliseconds(50));
  gpu.clock.Advance(absl::Milliseconds(49));
  const ResourceUsage usage = stretch->Finish();
  EXPECT_FALSE(usage.sm_activity_percent.has_value());
  EXPECT_EQ(usage.gpu_memory_used_bytes, 500u);
}

TEST(MachineMonitorTest, StretchesDoNotCallTheDriver) {
  MonitoredGpu gpu;
  const int before = gpu.nvml->reads();
  for (int i = 0; i < 100; ++i) {
    gpu.monitor->StartProbe()->Finish();
    gpu.monitor->Sample();
  }
  EXPECT_EQ(gpu.nvml->reads(), before);
}

TEST(MachineMonitorTest, EachReaderHasItsOwnInterval) {
  MonitoredGpu gpu(/*has_gpm=*/false);
  const auto slow = gpu.monitor->StartReader();
  const auto quick = gpu.monitor->StartReader();
  gpu.counters.utilization_percent = 0;
  gpu.Pass(absl::Seconds(2));
  EXPECT_EQ(quick->Sample()[1].sm_activity_percent, 0);
  gpu.counters.utilization_percent = 100;
  gpu.Pass(absl::Seconds(2));
  EXPECT_NEAR(quick->Sample()[1].sm_activity_percent.value_or(0), 100, 1e-6);
  EXPECT_NEAR(slow->Sample()[1].sm_activity_percent.value_or(0), 50, 1e-6);
  // Scrapers, however many, see the last second.
  for (int scraper = 0; scraper < 3; ++scraper) {
    EXPECT_NEAR(gpu.monitor->Sample()[1].sm_activity_percent.value_or(0), 100, 1e-6);
  }
}

TEST(MachineMonitorTest, SumsGrowWhoeverReadsThem) {
  MonitoredGpu gpu;
  gpu.counters.throttle_reasons = {"power cap"};
  gpu.Pass(absl::Seconds(1));
  gpu.monitor->Sample();
  gpu.Pass(absl::Seconds(1), /*sm_activity=*/50);
  const DeviceSample sample = gpu.monitor->Sample()[1];
  EXPECT_EQ(sample.name, "Fake GPU");
  EXPECT_EQ(sample.uuid, "GPU-fake");
  EXPECT_NEAR(sample.energy_joules.value_or(0), 800, 1e-6);
  EXPECT_NEAR(sample.sm_active_seconds.value_or(0), 0.77 + 0.5, 1e-6);
  EXPECT_NEAR(sample.throttled_seconds.value_or(0), 2, 1e-6);
  EXPECT_NEAR(sample.throttled_seconds_by_reason.at("power cap"), 2, 1e-6);
}

TEST(MachineMonitorTest, WithoutGpmUtilisationStandsIn) {
  MonitoredGpu gpu(/*has_gpm=*/false);
  const auto stretch = gpu.monitor->StartProbe();
  gpu.Pass(absl::Seconds(1));
  const ResourceUsage usage = stretch->Finish();
  EXPECT_NEAR(usage.sm_activity_percent.value_or(0), 77.0, 1e-6);
  EXPECT_FALSE(usage.gpu.tensor_activity_percent.has_value());
  EXPECT_EQ(usage.gpu_memory_used_bytes, 500u);
  const std::vector<DeviceSample> samples = gpu.monitor->Sample();
  ASSERT_EQ(samples.size(), 2u);
  EXPECT_NEAR(samples[1].sm_activity_percent.value_or(0), 77.0, 1e-6);
}

TEST(MachineMonitorTest, ATimelineHasEqualIntervalsWithTheirOwnMeans) {
  MonitoredGpu gpu;
  const auto timeline = gpu.monitor->StartTimeline();
  const absl::Time start = gpu.clock.Now();
  gpu.Pass(absl::Seconds(1));
  gpu.counters.power_watts = 100;
  gpu.Pass(absl::Seconds(1));
  const std::vector<TimelinePoint> points = timeline->Points();
  ASSERT_EQ(points.size(), 8u);
  EXPECT_EQ(points[0].start, start);
  EXPECT_EQ(points[3].start, start + absl::Milliseconds(750));
  EXPECT_DOUBLE_EQ(points[3].seconds, 0.25);
  EXPECT_NEAR(points[3].sample.power_watts.value_or(0), 400, 1e-6);
  EXPECT_NEAR(points[6].sample.power_watts.value_or(0), 100, 1e-6);
  EXPECT_EQ(points[6].sample.memory_used_bytes, 500u);
  EXPECT_EQ(points[6].sample.name, "") << "it does not change";
  EXPECT_EQ(points[6].sample.energy_joules, std::nullopt);
}

TEST(MachineMonitorTest, ALongTimelineDoublesItsInterval) {
  MonitoredGpu gpu;
  const auto timeline = gpu.monitor->StartTimeline();
  const absl::Time start = gpu.clock.Now();
  gpu.Pass(absl::Seconds(10));
  gpu.counters.power_watts = 100;
  gpu.counters.memory_used_bytes = 900;
  gpu.Pass(absl::Seconds(190));
  const std::vector<TimelinePoint> points = timeline->Points();
  EXPECT_LE(points.size(), DeviceTimeline::kMostPoints);
  EXPECT_GE(points.size(), DeviceTimeline::kMostPoints / 2);
  absl::Time next = start;
  double joules = 0;
  for (const TimelinePoint& point : points) {
    EXPECT_LE(absl::AbsDuration(point.start - next), absl::Microseconds(1));
    next = point.start + absl::Seconds(point.seconds);
    joules += point.seconds * point.sample.power_watts.value_or(0);
  }
  EXPECT_NEAR(joules, 10 * 400 + 190 * 100, 200);
  EXPECT_EQ(points.back().sample.memory_used_bytes, 900u);
}

TEST(MachineMonitorTest, WithoutAGpuATimelineShowsTheProcessor) {
  fakes::FakeClock clock;
  MachineMonitor monitor("", nullptr, nullptr, clock);
  const auto timeline = monitor.StartTimeline();
  for (int i = 0; i < 10; ++i) {
    clock.Advance(absl::Milliseconds(50));
    monitor.Tick();
  }
  ASSERT_EQ(timeline->Points().size(), 2u);
  EXPECT_TRUE(timeline->Points()[1].sample.memory_used_bytes.has_value());
  EXPECT_TRUE(timeline->Points()[1].sample.process_memory_bytes.has_value());
}

TEST(MachineMonitorTest, TheThreadTicks) {
  fakes::FakeClock clock;
  auto owned = std::make_unique<ScriptedNvml>(false);
  ScriptedNvml* const nvml = owned.get();
  GpuCounters counters;
  counters.memory_used_bytes = 123;
  nvml->Set(counters);
  MachineMonitor monitor("cuda:0", nullptr, std::move(owned), clock);
  monitor.StartSampling();
  clock.AwaitWaiters(1);
  clock.Advance(absl::Milliseconds(49));
  EXPECT_EQ(nvml->reads(), 0);
  const auto timeline = monitor.StartTimeline();
  while (timeline->Points().size() < 2) {
    clock.AwaitWaiters(1);
    clock.Advance(absl::Milliseconds(50));
  }
  EXPECT_GE(nvml->reads(), 2);
  EXPECT_EQ(timeline->Points()[1].sample.memory_used_bytes, 123u);
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
