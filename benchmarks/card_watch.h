// Reads a GPU's clocks, power and reasons for reduced clocks during a measurement.
#pragma once

#include <memory>
#include <string>
#include <thread>

#include "absl/synchronization/notification.h"
#include "benchmarks/bench_row.h"
#include "engine/monitor/nvml.h"

namespace wan {

// From construction until Finish(), a thread reads the counters: first at once, then 20 times a
// second.
class CardWatch {
 public:
  // `device` must outlive the watch. If `device` is null, all figures are absent.
  explicit CardWatch(const NvmlDevice* device);
  ~CardWatch();
  CardWatch(const CardWatch&) = delete;
  CardWatch& operator=(const CardWatch&) = delete;

  // Stops the thread and returns the summary of all samples. Call the function only once.
  CardState Finish();

 private:
  void Watch();

  const NvmlDevice* const device_;
  absl::Notification ended_;
  CardState state_;  // used only by the watch's thread while that runs
  std::thread thread_;
};

}  // namespace wan
