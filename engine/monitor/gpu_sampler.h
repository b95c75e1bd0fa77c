// Samples one GPU for all readers: stages, timelines, metrics, streams. Each reader has its own
// interval.
//
//   sampler.Tick();                                  // a thread, 20 times a second
//   const auto interval = sampler.Open();            // a stage begins
//   const GpuUsage usage = interval->Usage();        // it ends
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "engine/api/clock.h"
#include "engine/api/device_monitor.h"
#include "engine/monitor/nvml.h"

namespace wan {

// Integrals over time of an interval's figures, from which GpuUsage is computed. Slices of time
// with constant figures are added; no clock is involved.
class GpuIntegrals {
 public:
  // A slice with figures from the driver's counters or from GPM; absent figures are skipped.
  struct Slice {
    int64_t from_nanos = 0;
    int64_t to_nanos = 0;
    GpuCounters counters;  // as read at the end of the slice
    std::optional<int> processes;
  };
  struct EnergySlice {
    int64_t from_nanos = 0;
    int64_t to_nanos = 0;
    double joules = 0;
  };
  struct GpmSlice {
    int64_t from_nanos = 0;
    int64_t to_nanos = 0;
    GpmMetrics metrics;
  };

  // Each adds the part of the slice after `begin_nanos`.
  void Add(const Slice& slice, int64_t begin_nanos);
  void Add(const EnergySlice& slice, int64_t begin_nanos);
  void Add(const GpmSlice& slice, int64_t begin_nanos);

  // Returns the figures of an interval of `seconds`, most of which the slices must cover.
  GpuUsage Over(double seconds, bool has_gpm) const;

 private:
  // Integral of a figure over the time for which it is known, and that time.
  struct Integral {
    double sum = 0;
    double seconds = 0;
    void Add(const std::optional<double>& value, double for_seconds);
    std::optional<double> MeanOver(double stretch_seconds) const;
  };

  Integral utilization_, power_, energy_, sm_clock_, memory_clock_, throttled_;
  Integral sm_activity_, sm_occupancy_, tensor_activity_, dram_bandwidth_;
  std::optional<double> power_peak_, sm_clock_min_, temperature_peak_;
  std::optional<int> processes_;
  std::set<std::string> reasons_;
};

// Thread-safe. Only Tick() calls the driver, without holding a lock: if the driver blocks, readers
// do not wait but get absent figures.
class GpuSampler {
 public:
  // Older readings are not reported as current; a stuck driver gives no new ones.
  static constexpr int64_t kStaleNanos = 2'000'000'000;

  // A span of time from Open() on. The sampler must outlive it.
  class Interval {
   public:
    ~Interval();
    // The usage since Open() or the last Restart(). May be called often.
    GpuUsage Usage() const;
    void Restart();

   private:
    friend class GpuSampler;
    explicit Interval(GpuSampler& sampler) : sampler_(sampler) {}

    GpuSampler& sampler_;
    int64_t begin_nanos_ = 0;  // this and the next member are guarded by the sampler's mutex
    GpuIntegrals integrals_;
  };

  // The newest reading, and sums since the sampler's construction.
  struct Now {
    GpuCounters counters;
    std::optional<int> processes;
    std::optional<double> energy_joules;
    std::optional<double> sm_active_seconds;
    std::optional<double> throttled_seconds;
    std::map<std::string, double> throttled_seconds_by_reason;
  };

  GpuSampler(std::unique_ptr<NvmlDevice> nvml, const Clock& clock);

  const GpuFacts& facts() const { return facts_; }

  // Reads the driver's counters and adds them to all open intervals. Called by one thread at a
  // time.
  void Tick();

  std::unique_ptr<Interval> Open();
  // Returns nullopt before the first Tick and if the newest reading is older than kStaleNanos.
  std::optional<Now> Newest() const;
  // The usage in the last second.
  GpuUsage LastSecond() const;

 private:
  struct TimedGpm {
    int64_t nanos = 0;
    std::unique_ptr<GpmSample> sample;
  };

  // Each reads the driver if it is time, and returns the slice between the last two readings.
  std::optional<GpuIntegrals::GpmSlice> TickGpm();
  std::optional<GpuIntegrals::EnergySlice> TickEnergy();
  // `has_energy`: the card has an energy counter, so its power need not be integrated.
  void Accumulate(const GpuIntegrals::Slice& slice, bool has_energy)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Accumulate(const GpuIntegrals::EnergySlice& slice) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Accumulate(const GpuIntegrals::GpmSlice& slice) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::unique_ptr<NvmlDevice> nvml_;
  const Clock& clock_;
  const GpuFacts facts_;

  // Used only by the ticking thread.
  int64_t ticks_ = 0;
  int64_t last_nanos_ = 0;
  std::optional<double> last_energy_;  // absent if the card has no such counter
  int64_t last_energy_nanos_ = 0;
  std::optional<int> processes_;
  TimedGpm gpm_;

  mutable absl::Mutex mutex_;
  std::set<Interval*> open_ ABSL_GUARDED_BY(mutex_);
  std::optional<Now> newest_ ABSL_GUARDED_BY(mutex_);
  int64_t newest_nanos_ ABSL_GUARDED_BY(mutex_) = 0;
  // Slices that overlap the last second.
  std::deque<GpuIntegrals::Slice> slices_ ABSL_GUARDED_BY(mutex_);
  std::deque<GpuIntegrals::EnergySlice> energy_slices_ ABSL_GUARDED_BY(mutex_);
  std::deque<GpuIntegrals::GpmSlice> gpm_slices_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace wan
