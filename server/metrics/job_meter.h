// Makes metrics from changes of jobs' states: counters of ends by reason, and waiting times.
#pragma once

#include <prometheus/registry.h>

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "engine/api/clock.h"
#include "server/metrics/exemplars.h"
#include "server/watch/listener.h"

namespace wan::server {

// Thread-safe.
class JobMeter {
 public:
  // All arguments must outlive the meter.
  JobMeter(prometheus::Registry& registry, Exemplars& exemplars, Clock& clock);
  JobMeter(const JobMeter&) = delete;
  JobMeter& operator=(const JobMeter&) = delete;
  ~JobMeter();

  // Call these functions from the methods of StateListener that have the same names.
  void OnJobState(const wan::v1::Job& job, wan::v1::JobState previous);
  void OnJobCancelled(const wan::v1::Job& job, StopCause cause);
  void OnJobRequeued(const wan::v1::Job& job, RequeueCause cause);
  void OnJobsRejected(const absl::Status& problem, int jobs);
  void OnEstimateMet(const wan::v1::Job& job, const EstimateMet& met);

  // Creates the counters and histograms of a model with 0, so that rate() sees their first
  // increment.
  void AddModel(const std::string& model);

  // Returns for each model with waiting jobs how long the oldest of them has waited.
  std::map<std::string, absl::Duration> OldestQueued() const;

 private:
  struct Families;
  // The waiting jobs of a model, the oldest first.
  using Waiting = std::set<std::pair<absl::Time, std::string>>;

  void NoteQueue(const wan::v1::Job& job);

  Clock& clock_;
  Exemplars& exemplars_;
  const std::unique_ptr<Families> families_;
  mutable absl::Mutex mutex_;
  std::map<std::string, Waiting> waiting_ ABSL_GUARDED_BY(mutex_);  // the key is the model
};

}  // namespace wan::server
