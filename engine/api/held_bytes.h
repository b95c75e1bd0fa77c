// Counts the bytes that many objects hold together, and the most that they have held.
#pragma once

#include <atomic>
#include <cstdint>

namespace wan {

// Thread-safe; no call blocks.
class HeldBytes {
 public:
  // Adds `bytes`; a negative number subtracts.
  void Add(int64_t bytes) {
    const int64_t now = now_.fetch_add(bytes) + bytes;
    int64_t peak = peak_.load();
    while (now > peak && !peak_.compare_exchange_weak(peak, now)) {
    }
  }

  // Returns the peak since the last call. The next peak starts at the bytes that are held now.
  uint64_t TakePeak() { return static_cast<uint64_t>(peak_.exchange(now_.load())); }

 private:
  std::atomic<int64_t> now_{0};
  std::atomic<int64_t> peak_{0};
};

}  // namespace wan
