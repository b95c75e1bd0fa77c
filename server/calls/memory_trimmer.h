// Returns freed memory to the operating system after bursts, because the C library's allocator
// would keep it.
#pragma once

#include <cstdint>
#include <functional>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "engine/api/clock.h"
#include "server/jobs/deadline_timer.h"
#include "server/watch/listener.h"

namespace wan::server {

// Thread-safe. One second after `kWorthIt` bytes were freed, trims the heap once, so that a burst
// costs one trim (some milliseconds, during which other threads can allocate).
class MemoryTrimmer final : public StateListener {
 public:
  static constexpr int64_t kWorthIt = int64_t{64} << 20;

  // Calls `trim` on the trimmer's thread. The clock must outlive the trimmer.
  MemoryTrimmer(Clock& clock, std::function<void()> trim);

  // Calls the C library's malloc_trim.
  static void TrimHeap();

  // Call Freed when the process no longer needs `bytes` bytes of memory.
  void Freed(int64_t bytes);

  // When a job's run ends, counts its memory as freed. The trim matters on a CPU, where the next
  // job is checked against the system's free memory.
  void OnJobState(const wan::v1::Job& job, wan::v1::JobState previous) override;

  // When a model is ready, has failed or is unloaded, counts the memory of its load as freed.
  void OnModelState(const wan::v1::Model& model) override;

 private:
  Clock& clock_;
  absl::Mutex mutex_;
  int64_t freed_ ABSL_GUARDED_BY(mutex_) = 0;  // bytes freed since the last trim
  bool due_ ABSL_GUARDED_BY(mutex_) = false;
  DeadlineTimer timer_;  // declared last: its thread uses the members above
};

}  // namespace wan::server
