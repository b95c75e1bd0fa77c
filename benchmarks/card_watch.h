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
  // `device` may be null: every figure is absent then. It must outlive the watch.
  explicit CardWatch(const NvmlDevice* device);
  ~CardWatch();
  CardWatch(const CardWatch&) = delete;
  CardWatch& operator=(const CardWatch&) = delete;

  // Ends the readings. Call it once.
  CardState Finish();

 private:
  void Watch();

  const NvmlDevice* const device_;
  absl::Notification ended_;
  CardState state_;  // the thread's until it has ended
  std::thread thread_;
};

}  // namespace wan
