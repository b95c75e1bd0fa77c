// Reads a GPU's clocks, power and throttle reasons while something is measured on it.
#pragma once

#include <memory>
#include <string>
#include <thread>

#include "absl/synchronization/notification.h"
#include "benchmarks/bench_row.h"
#include "engine/monitor/nvml.h"

namespace wan {

// From construction to Finish() a thread reads the counters, at once and then 20 times a second.
class CardWatch {
 public:
  // `device` must outlive the watch; null makes every figure absent.
  explicit CardWatch(const NvmlDevice* device);
  ~CardWatch();
  CardWatch(const CardWatch&) = delete;
  CardWatch& operator=(const CardWatch&) = delete;

  // Ends the readings and returns their summary. Call it once.
  CardState Finish();

 private:
  void Watch();

  const NvmlDevice* const device_;
  absl::Notification ended_;
  CardState state_;  // used by the thread until it has ended
  std::thread thread_;
};

}  // namespace wan
