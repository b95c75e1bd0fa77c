// Follows a job's events, and says what a watcher of the job's video is told of them.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>

#include "wan/v1/generation.pb.h"

namespace wan::server {

// Not thread-safe. What the object says depends only on the job's request and on its events from
// the first one on, so two watchers are told the same, whenever they begin.
class VideoFollower {
 public:
  // `job` is the job as JobService::Get returns it; its state and progress are forgotten.
  explicit VideoFollower(wan::v1::Job job);

  // What an event changed.
  struct Change {
    bool status = false;    // the state; job() has the new one
    bool progress = false;  // what Progress returns
  };
  // Call it for each stored event of the job, beginning with the first.
  Change Apply(const wan::v1::Event& event);

  // The job after the latest event. After the last event, only its state is right: it lacks error,
  // end and files.
  const wan::v1::Job& job() const { return job_; }

  // Returns {"progress", "stage", "step", "steps", "eta_seconds", "queue_position"}; unknown values
  // are null. `eta_seconds` counts until the job's end, and while the job waits until its start.
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
