// Returns freed memory to the system after bursts, because the allocator would keep it.
#pragma once

#include <cstdint>
#include <functional>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "engine/api/clock.h"
#include "server/jobs/deadline_timer.h"
#include "server/watch/listener.h"

namespace wan::server {

// Thread-safe. Trims once, a second after `kWorthIt` bytes were freed, so that a burst costs one
// trim (some milliseconds, during which other threads can allocate).
class MemoryTrimmer final : public StateListener {
 public:
  static constexpr int64_t kWorthIt = int64_t{64} << 20;

  // `trim` runs on the trimmer's thread. The clock must outlive the trimmer.
  MemoryTrimmer(Clock& clock, std::function<void()> trim);

  // Calls the C library's malloc_trim.
  static void TrimHeap();

  // Call it when `bytes` are no longer needed.
  void Freed(int64_t bytes);

  // Counts the memory of a job as freed after its run. On a CPU the next job is checked against the
  // system's free memory.
  void OnJobState(const wan::v1::Job& job, wan::v1::JobState previous) override;

  // Counts the memory of a load as freed when the model is ready, has failed or is unloaded.
  void OnModelState(const wan::v1::Model& model) override;

 private:
  Clock& clock_;
  absl::Mutex mutex_;
  int64_t freed_ ABSL_GUARDED_BY(mutex_) = 0;  // since the last trim
  bool due_ ABSL_GUARDED_BY(mutex_) = false;
  DeadlineTimer timer_;  // last: its thread uses the others
};

}  // namespace wan::server
