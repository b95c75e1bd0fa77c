// Adds up a GPU's mean utilization over time, for counters.
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

// Sums since the GpuMeter was created; nullopt until the card has returned a value. The sums never
// decrease, so readers can compute differences.
struct GpuSums {
  std::optional<double> tensor_seconds;  // activity of the tensor cores, integrated over time
  std::optional<double> dram_seconds;    // used share of the memory bandwidth, integrated over time
};

// Thread-safe.
class GpuMeter {
 public:
  // Shortest interval over which a mean is taken; ten times the shortest that the card supports.
  static constexpr absl::Duration kShortest = absl::Seconds(1);

  // The meter owns the reader. `clock` must outlive the meter.
  GpuMeter(std::unique_ptr<DeviceReader> reader, Clock& clock);

  // Adds the use since the previous call to the sums, and returns the sums; the key is the device.
  // A call within kShortest of the previous one returns the previous sums. Time for which the card
  // returns no values does not count.
  std::map<std::string, GpuSums> Read();

 private:
  Clock& clock_;
  absl::Mutex mutex_;
  const std::unique_ptr<DeviceReader> reader_ ABSL_PT_GUARDED_BY(mutex_);
  int64_t read_nanos_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, GpuSums> sums_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace wan::server
