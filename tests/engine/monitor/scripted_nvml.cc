#include "tests/engine/monitor/scripted_nvml.h"

namespace wan {

void ScriptedNvml::Set(const GpuCounters& counters, std::optional<int> processes,
                       std::optional<double> energy_joules) {
  absl::MutexLock lock(&mutex_);
  counters_ = counters;
  processes_ = processes;
  energy_joules_ = energy_joules;
}

void ScriptedNvml::Pass(const GpmMetrics& metrics, double seconds) {
  absl::MutexLock lock(&mutex_);
  sums_.seconds += seconds;
  sums_.sm_activity += metrics.sm_activity_percent.value_or(0) * seconds;
  sums_.sm_occupancy += metrics.sm_occupancy_percent.value_or(0) * seconds;
  sums_.tensor_activity += metrics.tensor_activity_percent.value_or(0) * seconds;
  sums_.dram_bandwidth += metrics.dram_bandwidth_percent.value_or(0) * seconds;
}

int ScriptedNvml::reads() const {
  absl::MutexLock lock(&mutex_);
  return reads_;
}

int ScriptedNvml::energy_reads() const {
  absl::MutexLock lock(&mutex_);
  return energy_reads_;
}

GpuFacts ScriptedNvml::Describe() const {
  GpuFacts facts;
  facts.name = "Fake GPU";
  facts.uuid = "GPU-fake";
  facts.memory_total_bytes = 1000;
  facts.has_gpm = has_gpm_;
  return facts;
}

GpuCounters ScriptedNvml::Read() const {
  absl::MutexLock lock(&mutex_);
  ++reads_;
  return counters_;
}

std::optional<double> ScriptedNvml::ReadEnergyJoules() const {
  absl::MutexLock lock(&mutex_);
  ++energy_reads_;
  return energy_joules_;
}

std::optional<int> ScriptedNvml::CountProcesses() const {
  absl::MutexLock lock(&mutex_);
  return processes_;
}

std::unique_ptr<GpmSample> ScriptedNvml::TakeGpmSample() const {
  if (!has_gpm_) return nullptr;
  absl::MutexLock lock(&mutex_);
  return std::make_unique<Sums>(sums_);
}

GpmMetrics ScriptedNvml::Between(const GpmSample& from, const GpmSample& to) const {
  const Sums& a = static_cast<const Sums&>(from);
  const Sums& b = static_cast<const Sums&>(to);
  const double seconds = b.seconds - a.seconds;
  if (seconds <= 0) return {};
  return {(b.sm_activity - a.sm_activity) / seconds, (b.sm_occupancy - a.sm_occupancy) / seconds,
          (b.tensor_activity - a.tensor_activity) / seconds,
          (b.dram_bandwidth - a.dram_bandwidth) / seconds};
}

}  // namespace wan
