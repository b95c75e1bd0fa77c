// Records the driver's figures of a GPU 20 times a second as a CSV file, and prints how long each
// kind of reading takes. The sampler's tests replay such files (tests/engine/monitor/data). The
// program needs no LibTorch; another program must keep the card busy meanwhile.
//
//   wan_gpu_trace --bus-id "$(nvidia-smi --query-gpu=pci.bus_id --format=csv,noheader -i 0)"
//                 --seconds 30 --output trace.csv
#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "engine/monitor/nvml.h"

namespace wan {
namespace {

using SteadyClock = std::chrono::steady_clock;

// Collects how long the readings of one kind take.
class Cost {
 public:
  template <typename Work>
  auto Of(const Work& work) {
    const auto start = SteadyClock::now();
    auto result = work();
    const double seconds = std::chrono::duration<double>(SteadyClock::now() - start).count();
    sum_ += seconds;
    most_ = std::max(most_, seconds);
    ++calls_;
    return result;
  }
  void Print(const char* name) const {
    if (calls_ == 0) return;
    std::printf("%-10s %6lld times, mean %8.1f us, most %8.1f us\n", name,
                static_cast<long long>(calls_), sum_ / static_cast<double>(calls_) * 1e6,
                most_ * 1e6);
  }

 private:
  double sum_ = 0;
  double most_ = 0;
  int64_t calls_ = 0;
};

template <typename Figure>
std::string Cell(const std::optional<Figure>& figure) {
  if (!figure.has_value()) return "";
  // Nine digits are enough for a tenth of a joule in the energy of a whole day.
  if constexpr (std::is_floating_point_v<Figure>) return absl::StrFormat("%.9g", *figure);
  return std::to_string(*figure);
}

int Record(const std::string& bus_id, double seconds, const std::string& output) {
  const std::unique_ptr<NvmlDevice> nvml = OpenNvmlDevice(bus_id);
  if (nvml == nullptr) {
    std::cerr << "NVML knows no GPU at " << bus_id << "; nvidia-smi prints the ids\n";
    return 1;
  }
  const GpuFacts facts = nvml->Describe();
  std::ofstream file(output);
  file << "# Recorded on an " << facts.name << " with driver " << facts.driver_version << ".\n"
       << "nanos,power_watts,energy_joules,temperature_celsius,sm_clock_mhz,memory_clock_mhz,"
          "throttle_reasons,utilization_percent,memory_used_bytes,processes,sm_activity_percent,"
          "sm_occupancy_percent,tensor_activity_percent,dram_bandwidth_percent\n";
  Cost counters_cost, energy_cost, processes_cost, sample_cost, metrics_cost;
  std::unique_ptr<GpmSample> last;
  GpmMetrics metrics;
  const auto start = SteadyClock::now();
  constexpr auto kInterval = std::chrono::milliseconds(50);
  for (int tick = 0; tick * 0.05 < seconds; ++tick) {
    std::this_thread::sleep_until(start + tick * kInterval);
    const GpuCounters counters = counters_cost.Of([&] { return nvml->Read(); });
    const auto energy = energy_cost.Of([&] { return nvml->ReadEnergyJoules(); });
    const auto processes = processes_cost.Of([&] { return nvml->CountProcesses(); });
    if (tick % 2 == 0) {
      std::unique_ptr<GpmSample> sample = sample_cost.Of([&] { return nvml->TakeGpmSample(); });
      if (sample != nullptr && last != nullptr) {
        metrics = metrics_cost.Of([&] { return nvml->Between(*last, *sample); });
      }
      last = std::move(sample);
    }
    const int64_t nanos =
        std::chrono::duration_cast<std::chrono::nanoseconds>(SteadyClock::now() - start).count();
    file << nanos << ',' << Cell(counters.power_watts) << ',' << Cell(energy) << ','
         << Cell(counters.temperature_celsius) << ',' << Cell(counters.sm_clock_mhz) << ','
         << Cell(counters.memory_clock_mhz) << ','
         << (counters.throttle_reasons.has_value() ? absl::StrJoin(*counters.throttle_reasons, "|")
                                                   : "")
         << ',' << Cell(counters.utilization_percent) << ',' << Cell(counters.memory_used_bytes)
         << ',' << Cell(processes) << ',' << Cell(metrics.sm_activity_percent) << ','
         << Cell(metrics.sm_occupancy_percent) << ',' << Cell(metrics.tensor_activity_percent)
         << ',' << Cell(metrics.dram_bandwidth_percent) << '\n';
  }
  counters_cost.Print("counters");
  energy_cost.Print("energy");
  processes_cost.Print("processes");
  sample_cost.Print("GPM sample");
  metrics_cost.Print("GPM means");
  if (file.flush()) return 0;
  std::cerr << output << " could not be written\n";
  return 1;
}

}  // namespace
}  // namespace wan

int main(int argc, char** argv) {
  CLI::App app("Records what the driver tells of a GPU, 20 times a second, as a CSV.");
  std::string bus_id;
  std::string output;
  double seconds = 30;
  app.add_option("--bus-id", bus_id, "PCI bus id, as nvidia-smi prints it")->required();
  app.add_option("--output", output, "the file to write")->required();
  app.add_option("--seconds", seconds, "how long to record")->check(CLI::Range(0.1, 3600.0));
  CLI11_PARSE(app, argc, argv);
  return wan::Record(bus_id, seconds, output);
}
