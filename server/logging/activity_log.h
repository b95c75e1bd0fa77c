// Logs what jobs and models do: one line a change of state, and one a stage at level debug.
#pragma once

#include "server/logging/logger.h"
#include "server/watch/listener.h"

namespace wan::server {

// Prompts, images and labels are the callers' own and never logged.
class ActivityLog final : public StateListener {
 public:
  // The logger must outlive the log and its sinks.
  explicit ActivityLog(Logger& logger) : logger_(logger) {}

  void OnJobState(const wan::v1::Job& job, wan::v1::JobState previous) override;
  void OnModelState(const wan::v1::Model& model) override;
  void OnProblem(const absl::Status& problem) override;
  void OnDeviceLost(const absl::Status& problem) override;
  void OnStorage(const absl::Status& status) override;

  // Sinks that log every stage with its seconds.
  SinkFactory StageSinks();

 private:
  Logger& logger_;
};

}  // namespace wan::server
