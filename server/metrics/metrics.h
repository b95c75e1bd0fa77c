// The server's metrics for Prometheus; docs/operations.md lists them all. Histograms and counters
// grow with the Recorder's spans and the jobs' states. Gauges are read when a scrape comes.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/api/device_monitor.h"
#include "server/jobs/job_service.h"
#include "server/metrics/wire_stats.h"
#include "server/watch/listener.h"

namespace prometheus {
class Collectable;
}

namespace wan::server {

// What the gauges show, read at the moment of a scrape.
struct MetricsSnapshot {
  JobStats jobs;
  std::vector<wan::v1::Model> models;
  std::vector<DeviceSample> devices;
  WireStats wire;
};

// Thread-safe.
class Metrics final : public StateListener {
 public:
  // The labels of wan_build_info.
  struct BuildInfo {
    std::string version;
    std::string device;  // "cuda:0"
    std::string dtype;   // "bf16"
  };

  explicit Metrics(const BuildInfo& build);
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;
  ~Metrics() override;

  // Sets the function that reads the gauges' values. It is called once for each scrape, on the
  // scrape's thread. Until the first call, and after SetSource(nullptr), there are no gauges. When
  // this returns, the previous source is not running and will not run again.
  void SetSource(std::function<MetricsSnapshot()> source);

  // Returns a factory of sinks that observe the seconds of stages and steps. This object must
  // outlive them.
  SinkFactory StageSinks();

  void OnJobState(const wan::v1::Job& job, wan::v1::JobState previous) override;
  void OnModelState(const wan::v1::Model& model) override;
  void OnDeviceLost(DeviceLoss cause, const absl::Status& problem) override;
  void OnSavepoint(const wan::v1::Job& job, int steps_done, double seconds) override;
  void OnWebhook(const WebhookOutcome& outcome) override;
  void OnRetention(const RetentionRound& round) override;

  // Returns what MetricsServer serves. It stays valid after this object is destroyed.
  std::shared_ptr<prometheus::Collectable> collectable() const;

 private:
  class StageSink;
  struct Families;

  const std::shared_ptr<Families> families_;
};

}  // namespace wan::server
