// Counts bytes that many objects hold together, and their peak.
#pragma once

#include <atomic>
#include <cstdint>

namespace wan {

// Thread-safe; never blocks.
class HeldBytes {
 public:
  // Adds bytes, or subtracts them if negative.
  void Add(int64_t bytes) {
    const int64_t now = now_.fetch_add(bytes) + bytes;
    int64_t peak = peak_.load();
    while (now > peak && !peak_.compare_exchange_weak(peak, now)) {
    }
  }

  // Returns the peak since the last call, and restarts it at the present bytes.
  uint64_t TakePeak() { return static_cast<uint64_t>(peak_.exchange(now_.load())); }

 private:
  std::atomic<int64_t> now_{0};
  std::atomic<int64_t> peak_{0};
};

}  // namespace wan
