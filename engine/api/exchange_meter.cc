#include "engine/api/exchange_meter.h"

#include <utility>

namespace wan {

void ExchangeMeter::CountSent(uint64_t bytes) {
  absl::MutexLock lock(&mutex_);
  sums_.sent_bytes += bytes;
}

void ExchangeMeter::CountWait(Wait wait) {
  absl::MutexLock lock(&mutex_);
  pending_.push_back(std::move(wait));
  // Remove finished waits, so that the list has only pending waits.
  Settle();
}

Exchanged ExchangeMeter::Read() {
  absl::MutexLock lock(&mutex_);
  Settle();
  return sums_;
}

void ExchangeMeter::Settle() {
  while (!pending_.empty()) {
    std::optional<double> seconds;
    try {
      seconds = pending_.front()();
      if (!seconds.has_value()) return;
    } catch (...) {
      // The device is lost, so nobody knows how long the device waited.
    }
    sums_.waited_seconds += seconds.value_or(0);
    pending_.pop_front();
  }
}

}  // namespace wan
