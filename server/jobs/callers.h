// Counts the callers of the jobs that end when their callers have gone.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "engine/api/clock.h"
#include "server/jobs/deadline_timer.h"

namespace wan::server {

// Thread-safe. A job has several callers if several calls use its request_id, for example when a
// client reconnects before the server notices the broken connection.
class Callers {
 public:
  // Calls `lost` with each job whose last caller has gone and has not come back within `grace`, on
  // a thread of this object and with no lock held. The clock must outlive the object.
  Callers(Clock& clock, absl::Duration grace, std::function<void(const std::string& job)> lost);

  absl::Duration grace() const { return grace_; }

  void Join(const std::string& job);
  // Removes one caller of the job; returns whether the job has no caller left.
  bool Leave(const std::string& job);
  // Starts the grace time of a job; call Await after its last caller has left.
  void Await(const std::string& job);
  // Removes the job if it has no caller. Returns whether the job was removed.
  bool Forget(const std::string& job);

  // `lost` is not called after Stop has returned. Later calls do nothing.
  void Stop() { timer_.Stop(); }

 private:
  Clock& clock_;
  const absl::Duration grace_;
  absl::Mutex mutex_;
  std::map<std::string, int> callers_ ABSL_GUARDED_BY(mutex_);
  DeadlineTimer timer_;  // declared last: its thread uses the members above
};

}  // namespace wan::server
