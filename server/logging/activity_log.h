// Logs every change of the state of a job or model and, at level debug, every stage.
#pragma once

#include <atomic>

#include "server/logging/logger.h"
#include "server/watch/listener.h"
#include "server/watch/not_serving.h"

namespace wan::server {

// Thread-safe. The log never gets prompts, images or labels, which belong to the callers.
class ActivityLog final : public StateListener {
 public:
  // `logger` must outlive this object and its sinks.
  explicit ActivityLog(Logger& logger) : logger_(logger) {}

  void OnJobState(const wan::v1::Job& job, wan::v1::JobState previous) override;
  void OnModelState(const wan::v1::Model& model) override;
  void OnProblem(const absl::Status& problem) override;
  void OnGroupLost(int group, std::string_view device, const absl::Status& problem) override;
  void OnDeviceLost(DeviceLoss cause, const absl::Status& problem) override;
  void OnStorage(const absl::Status& status) override;
  void OnWebhook(const WebhookOutcome& outcome) override;
  void OnSpans(const SpansOutcome& outcome) override;
  void OnDraining() override;
  void OnUndrained() override;
  void OnEstimateMet(const wan::v1::Job& job, const EstimateMet& met) override;
  void OnStopChoice(const StopChoice& choice) override;
  void OnRetention(const RetentionRound& round) override;

  // Call OnHealth when the reasons for taking no jobs change; an empty list means that the server
  // takes jobs again.
  void OnHealth(const NotServingReasons& reasons);

  // Returns a factory of sinks that log every stage with its duration. This object must outlive the
  // sinks.
  SinkFactory StageSinks();

 private:
  Logger& logger_;
  // Whether spans were lost since the last successful export.
  std::atomic<bool> spans_lost_ = false;
};

}  // namespace wan::server
