// Sums over time of what the monitor tells of a GPU as means only, for counters.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "engine/api/clock.h"
#include "engine/api/device_monitor.h"

namespace wan::server {

// Since the meter was made; absent while the card has told nothing. They only grow, so any number
// of readers may take differences.
struct GpuSums {
  std::optional<double> tensor_seconds;  // the integral of the tensor activity
  std::optional<double> dram_seconds;    // the integral of the share of the memory's bandwidth
};

// Thread-safe.
class GpuMeter {
 public:
  // Means over less than this are not read: the card tells none below a tenth of it.
  static constexpr absl::Duration kShortest = absl::Seconds(1);

  // The reader is the meter's own. `clock` must outlive the meter.
  GpuMeter(std::unique_ptr<DeviceReader> reader, Clock& clock);

  // Adds what was done since the call before, and returns the sums by device. Within kShortest it
  // returns the same ones again. Time for which the card told nothing is not counted.
  std::map<std::string, GpuSums> Read();

 private:
  Clock& clock_;
  absl::Mutex mutex_;
  const std::unique_ptr<DeviceReader> reader_ ABSL_PT_GUARDED_BY(mutex_);
  int64_t read_nanos_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, GpuSums> sums_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace wan::server
