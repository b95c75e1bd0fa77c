// Samples one GPU for all readers: stages, timelines, metrics and streams. Each reader has an
// interval of its own.
//
//   sampler.Tick();                                  // a thread, 20 times a second
//   const auto interval = sampler.Open();            // a stage begins
//   const GpuUsage usage = interval->Usage();        // it ends
#pragma once

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

// The sums (integrals over time) of an interval's figures, from which GpuUsage is computed. Callers
// add slices of time in which all figures are constant. No clock is read.
class GpuIntegrals {
 public:
  // A slice of time with figures from the driver's counters, or from GPM. Add skips absent figures.
  struct Slice {
    int64_t from_nanos = 0;
    int64_t to_nanos = 0;
    GpuCounters counters;  // the readings at the end of the slice
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

  // Each Add function counts only the part of the slice after `begin_nanos`.
  void Add(const Slice& slice, int64_t begin_nanos);
  void Add(const EnergySlice& slice, int64_t begin_nanos);
  void Add(const GpmSlice& slice, int64_t begin_nanos);

  // Returns the figures of an interval of `seconds`. The added slices must cover most of the
  // interval.
  GpuUsage Over(double seconds, bool has_gpm) const;

 private:
  // The integral of a figure over the time for which the figure is known, and the length of that
  // time.
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

// Thread-safe. Only Tick() calls the driver, and Tick() holds no lock meanwhile. So if the driver
// blocks, readers do not wait but get absent figures.
class GpuSampler {
 public:
  // Readings that are older than kStaleNanos do not count as current. If the driver hangs, no new
  // readings arrive.
  static constexpr int64_t kStaleNanos = 2'000'000'000;

  // A span of time that begins with Open(). The sampler must outlive all intervals.
  class Interval {
   public:
    ~Interval();
    // Returns the usage since the last Restart(), or since Open() if nobody called Restart(). The
    // function may be called often.
    GpuUsage Usage() const;
    void Restart();

   private:
    friend class GpuSampler;
    explicit Interval(GpuSampler& sampler) : sampler_(sampler) {}

    GpuSampler& sampler_;
    int64_t begin_nanos_ = 0;  // the sampler's mutex guards this member and the next one
    GpuIntegrals integrals_;
  };

  // The newest reading, and sums from the sampler's construction until then.
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

  // Reads the driver's counters, and adds them to all open intervals. Only one thread at a time may
  // call it.
  void Tick();

  std::unique_ptr<Interval> Open();
  // Returns the newest reading; nullopt before the first Tick, and if the reading is older than
  // kStaleNanos.
  std::optional<Now> Newest() const;
  // Returns the usage in the last second.
  GpuUsage LastSecond() const;

 private:
  struct TimedGpm {
    int64_t nanos = 0;
    std::unique_ptr<GpmSample> sample;
  };

  // When a reading is due, each function reads the driver and returns the slice between this
  // reading and the previous one.
  std::optional<GpuIntegrals::GpmSlice> TickGpm();
  std::optional<GpuIntegrals::EnergySlice> TickEnergy();
  // `has_energy` tells whether the card has an energy counter; then its power need not be
  // integrated.
  void Accumulate(const GpuIntegrals::Slice& slice, bool has_energy)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Accumulate(const GpuIntegrals::EnergySlice& slice) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Accumulate(const GpuIntegrals::GpmSlice& slice) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::unique_ptr<NvmlDevice> nvml_;
  const Clock& clock_;
  const GpuFacts facts_;

  // Only the thread that ticks uses these members.
  int64_t ticks_ = 0;
  int64_t last_nanos_ = 0;
  std::optional<double> last_energy_;  // absent if the card has no energy counter
  int64_t last_energy_nanos_ = 0;
  std::optional<int> processes_;
  TimedGpm gpm_;

  mutable absl::Mutex mutex_;
  std::set<Interval*> open_ ABSL_GUARDED_BY(mutex_);
  std::optional<Now> newest_ ABSL_GUARDED_BY(mutex_);
  int64_t newest_nanos_ ABSL_GUARDED_BY(mutex_) = 0;
  // The slices of the last second; the oldest may begin earlier.
  std::deque<GpuIntegrals::Slice> slices_ ABSL_GUARDED_BY(mutex_);
  std::deque<GpuIntegrals::EnergySlice> energy_slices_ ABSL_GUARDED_BY(mutex_);
  std::deque<GpuIntegrals::GpmSlice> gpm_slices_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace wan
