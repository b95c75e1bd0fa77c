// Gives memory that is free back to the system after bursts: the allocator keeps it otherwise.
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

  // So many bytes are not needed any more.
  void Freed(int64_t bytes);

  // What a job computed with is free when it has run. On a CPU that is most of the memory that the
  // next job is compared with.
  void OnJobState(const wan::v1::Job& job, wan::v1::JobState previous) override;

  // What a model was loaded with is free when it is ready, has failed or is unloaded: headers of
  // files, or all of what was read of a bad one.
  void OnModelState(const wan::v1::Model& model) override;

 private:
  Clock& clock_;
  absl::Mutex mutex_;
  int64_t freed_ ABSL_GUARDED_BY(mutex_) = 0;  // since the last trim
  bool due_ ABSL_GUARDED_BY(mutex_) = false;
  DeadlineTimer timer_;  // last: its thread uses the others
};

}  // namespace wan::server
