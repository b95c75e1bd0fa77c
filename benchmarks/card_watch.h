// Reads a GPU's clocks, power and throttle reasons during a measurement.
#pragma once

#include <memory>
#include <string>
#include <thread>

#include "absl/synchronization/notification.h"
#include "benchmarks/bench_row.h"
#include "engine/monitor/nvml.h"

namespace wan {

// From construction to Finish() a thread reads the counters, first at once and then 20 times a
// second.
class CardWatch {
 public:
  // `device` must outlive the watch; if it is null all figures are absent.
  explicit CardWatch(const NvmlDevice* device);
  ~CardWatch();
  CardWatch(const CardWatch&) = delete;
  CardWatch& operator=(const CardWatch&) = delete;

  // Stops reading and returns the summary. Call it once.
  CardState Finish();

 private:
  void Watch();

  const NvmlDevice* const device_;
  absl::Notification ended_;
  CardState state_;  // used by the thread while it runs
  std::thread thread_;
};

}  // namespace wan
