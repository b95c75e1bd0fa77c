// A GPU that does what a test says.
#pragma once

#include <memory>
#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "engine/monitor/nvml.h"

namespace wan {

// Thread-safe. GPM's metrics between two samples are the means of what was passed to Pass() between
// them.
class ScriptedNvml final : public NvmlDevice {
 public:
  explicit ScriptedNvml(bool has_gpm) : has_gpm_(has_gpm) {}

  // Sets what the next readings show.
  void Set(const GpuCounters& counters, std::optional<int> processes = 1,
           std::optional<double> energy_joules = std::nullopt);
  // Lets the card do this for so long.
  void Pass(const GpmMetrics& metrics, double seconds);
  int reads() const;
  int energy_reads() const;

  GpuFacts Describe() const override;
  GpuCounters Read() const override;
  std::optional<double> ReadEnergyJoules() const override;
  std::optional<int> CountProcesses() const override;
  std::unique_ptr<GpmSample> TakeGpmSample() const override;
  GpmMetrics Between(const GpmSample& from, const GpmSample& to) const override;

 private:
  struct Sums final : GpmSample {
    double seconds = 0;
    double sm_activity = 0;
    double sm_occupancy = 0;
    double tensor_activity = 0;
    double dram_bandwidth = 0;
  };

  const bool has_gpm_;
  mutable absl::Mutex mutex_;
  GpuCounters counters_ ABSL_GUARDED_BY(mutex_);
  std::optional<int> processes_ ABSL_GUARDED_BY(mutex_) = 1;
  Sums sums_ ABSL_GUARDED_BY(mutex_);
  std::optional<double> energy_joules_ ABSL_GUARDED_BY(mutex_);
  mutable int reads_ ABSL_GUARDED_BY(mutex_) = 0;
  mutable int energy_reads_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace wan
