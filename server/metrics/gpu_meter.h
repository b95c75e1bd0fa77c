// Integrates a GPU's mean utilization over time, for counters.
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

// Sums since the meter was constructed; nullopt until the card has given a value. The sums never
// decrease, so readers can take differences.
struct GpuSums {
  std::optional<double> tensor_seconds;  // integral of the tensor cores' activity
  std::optional<double> dram_seconds;    // integral of the used share of memory bandwidth
};

// Thread-safe.
class GpuMeter {
 public:
  // Shortest interval of a mean; ten times what the card supports.
  static constexpr absl::Duration kShortest = absl::Seconds(1);

  // The meter owns the reader. `clock` must outlive the meter.
  GpuMeter(std::unique_ptr<DeviceReader> reader, Clock& clock);

  // Adds the time since the previous call and returns the sums by device. Within kShortest of the
  // previous call returns the same sums. Time for which the card gives no values is not counted.
  std::map<std::string, GpuSums> Read();

 private:
  Clock& clock_;
  absl::Mutex mutex_;
  const std::unique_ptr<DeviceReader> reader_ ABSL_PT_GUARDED_BY(mutex_);
  int64_t read_nanos_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, GpuSums> sums_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace wan::server
