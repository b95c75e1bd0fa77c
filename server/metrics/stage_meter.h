// Makes metrics from the spans of jobs: histograms of stages and steps, counters of time and
// operations by stage, and the progress of running attempts.
#pragma once

#include <prometheus/registry.h>

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "engine/api/clock.h"
#include "engine/api/recorder.h"
#include "server/watch/listener.h"

namespace wan::server {

// Makes the metric labels for the shapes of videos. The first kShapes shapes get a label of their
// own, all others "other", because callers choose the shapes, and series are never removed.
// Thread-safe.
class ShapeLabels {
 public:
  static constexpr size_t kShapes = 32;

  // Returns the shape as a label, "1280x704x121", or "other".
  std::string LabelOf(const VideoShape& shape);

 private:
  absl::Mutex mutex_;
  std::set<VideoShape> known_ ABSL_GUARDED_BY(mutex_);
};

// The progress of a running attempt.
struct InFlight {
  int group = 0;  // the number of the attempt's device group
  std::string model;
  std::string quality;
  int step = 0;   // number of steps that are done
  int steps = 0;  // number of the job's steps; 0 before the first one begins
  absl::Duration elapsed;
  absl::Duration since_step;  // time since the last step, or since the attempt began
  std::string stage;  // the open stage, for example "Step_Inference"; "Other" between stages
  absl::Duration in_stage;
};

// Thread-safe.
class StageMeter {
 public:
  // The arguments must outlive the meter, and the meter must outlive its sinks.
  StageMeter(prometheus::Registry& registry, Clock& clock);
  StageMeter(const StageMeter&) = delete;
  StageMeter& operator=(const StageMeter&) = delete;
  ~StageMeter();

  // Makes a sink for one attempt of a job, or one load of a model.
  std::unique_ptr<TelemetrySink> NewSink(const SinkContext& context);

  // Creates the histogram of the model's stops with 0, so that rate() sees its first increment.
  void AddModel(const std::string& model);

  // Returns the running attempts in the order of the device groups; a group has at most one.
  std::vector<InFlight> Running() const;

 private:
  class Sink;
  struct Families;

  Clock& clock_;
  const std::unique_ptr<Families> families_;
  ShapeLabels shapes_;
  mutable absl::Mutex mutex_;
  // The sinks of the running attempts; the key is the device group.
  std::map<int, const Sink*> running_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace wan::server
