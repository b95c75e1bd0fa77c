#include "benchmarks/card_watch.h"

#include <algorithm>
#include <set>

#include "absl/time/time.h"

namespace wan {
namespace {

constexpr absl::Duration kInterval = absl::Milliseconds(50);

class Mean {
 public:
  void Add(const std::optional<double>& value) {
    if (!value.has_value()) return;
    sum_ += *value;
    ++count_;
  }
  std::optional<double> value() const {
    return count_ > 0 ? std::optional(sum_ / count_) : std::nullopt;
  }

 private:
  double sum_ = 0;
  int count_ = 0;
};

}  // namespace

CardWatch::CardWatch(const NvmlDevice* device) : device_(device) {
  if (device_ != nullptr) thread_ = std::thread([this] { Watch(); });
}

CardWatch::~CardWatch() {
  if (!thread_.joinable()) return;
  ended_.Notify();
  thread_.join();
}

void CardWatch::Watch() {
  Mean clock;
  Mean power;
  std::set<std::string> reasons;
  do {
    const GpuCounters counters = device_->Read();
    clock.Add(counters.sm_clock_mhz);
    power.Add(counters.power_watts);
    if (counters.temperature_celsius.has_value()) {
      state_.temperature_celsius =
          std::max(state_.temperature_celsius.value_or(0), *counters.temperature_celsius);
    }
    if (counters.throttle_reasons.has_value()) {
      reasons.insert(counters.throttle_reasons->begin(), counters.throttle_reasons->end());
      state_.throttle_reasons.emplace(reasons.begin(), reasons.end());
    }
  } while (!ended_.WaitForNotificationWithTimeout(kInterval));
  state_.sm_clock_mhz = clock.value();
  state_.power_watts = power.value();
}

CardState CardWatch::Finish() {
  if (thread_.joinable()) {
    ended_.Notify();
    thread_.join();
  }
  return state_;
}

}  // namespace wan
