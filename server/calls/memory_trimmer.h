// Returns free memory to the system after bursts, because the allocator would keep it.
#pragma once

#include <cstdint>
#include <functional>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "engine/api/clock.h"
#include "server/jobs/deadline_timer.h"
#include "server/watch/listener.h"

namespace wan::server {

// Thread-safe. It trims once, a second after the first `kWorthIt` bytes were freed, so that a burst
// costs one trim (milliseconds, while other threads' allocations go on) and calm costs none.
class MemoryTrimmer final : public StateListener {
 public:
  static constexpr int64_t kWorthIt = int64_t{64} << 20;

  // `trim` runs on the trimmer's thread. The clock must outlive the trimmer.
  MemoryTrimmer(Clock& clock, std::function<void()> trim);

  // The C library's malloc_trim.
  static void TrimHeap();

  // Reports bytes that are no longer needed.
  void Freed(int64_t bytes);

  // Memory of a job is free after its run. On a CPU that is most of the memory against which the
  // next job is checked.
  void OnJobState(const wan::v1::Job& job, wan::v1::JobState previous) override;

  // Memory of a load is free when the model is ready, has failed or is unloaded: headers of files,
  // or everything read from a damaged one.
  void OnModelState(const wan::v1::Model& model) override;

 private:
  Clock& clock_;
  absl::Mutex mutex_;
  int64_t freed_ ABSL_GUARDED_BY(mutex_) = 0;  // since the last trim
  bool due_ ABSL_GUARDED_BY(mutex_) = false;
  DeadlineTimer timer_;  // last: its thread uses the others
};

}  // namespace wan::server
