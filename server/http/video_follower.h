// Follows a job's events, and computes what watchers of the job's video see.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>

#include "wan/v1/generation.pb.h"

namespace wan::server {

// Not thread-safe. The results depend only on the job's request and events, so all watchers see the
// same values, whenever they begin to watch.
class VideoFollower {
 public:
  // `job` is the result of JobService::Get; the object ignores its state and progress.
  explicit VideoFollower(wan::v1::Job job);

  // The parts of the job's state that an event has changed.
  struct Change {
    bool status = false;    // the state; job() has the new one
    bool progress = false;  // the result of Progress
  };
  // Call Apply for each stored event of the job, beginning with the first.
  Change Apply(const wan::v1::Event& event);

  // The job after the latest event. After the job's last event, the returned job has the right
  // state, but lacks the error, the end time and the files.
  const wan::v1::Job& job() const { return job_; }

  // Returns {"progress", "stage", "step", "steps", "eta_seconds", "queue_position"}; unknown values
  // are null. `eta_seconds` is the time until the job's end; for a waiting job, until the job's
  // start.
  nlohmann::json Progress() const;

 private:
  void Wait();
  void Work(const wan::v1::Event& event);

  wan::v1::Job job_;
  const char* stage_ = "";  // a word, not the stage's name
  std::optional<double> eta_seconds_;
  std::optional<int> queue_position_;
};

}  // namespace wan::server
