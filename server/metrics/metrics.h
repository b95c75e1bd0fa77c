// The server's metrics for Prometheus, listed in catalog.cc and docs/operate/metrics.md. Histograms
// and counters are updated by spans and state changes; gauges are read at each scrape.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/api/clock.h"
#include "engine/api/device_monitor.h"
#include "server/jobs/job_service.h"
#include "server/metrics/gpu_meter.h"
#include "server/metrics/stage_meter.h"
#include "server/metrics/wire_stats.h"
#include "server/watch/listener.h"

namespace wan::server {

class ScrapeSource;

// The values of the gauges at a scrape.
struct MetricsSnapshot {
  JobStats jobs;
  std::vector<wan::v1::Model> models;
  std::vector<DeviceSample> devices;
  WireStats wire;
  StorageStats storage;
  std::map<std::string, GpuSums> gpu_sums;  // by device
  // Number of log lines dropped since the start, by log: "server", "audit".
  std::map<std::string, int64_t> dropped_lines;
  // Metrics fills in the following two itself.
  std::vector<InFlight> in_flight;                      // by group
  std::map<std::string, absl::Duration> oldest_queued;  // by model
};

// Thread-safe.
class Metrics final : public StateListener {
 public:
  // The labels of wan_build_info.
  struct BuildInfo {
    std::string version;
    std::string revision;   // the commit; empty if unknown
    std::string device;     // "cuda:0"
    std::string dtype;      // "bf16"
    std::string libraries;  // compute libraries with versions
    std::string grpc;       // the driver's version
  };

  // `clock` must outlive the object and the result of scrapes().
  Metrics(const BuildInfo& build, Clock& clock);
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;
  ~Metrics() override;

  // Sets the function that reads the gauges' values, called in ScrapeSource::Collect. Without one
  // there are no gauges. The previous function is not running after this returns.
  void SetSource(std::function<MetricsSnapshot()> source);

  // Returns a factory of sinks that observe the durations of stages and steps. This object must
  // outlive the sinks.
  SinkFactory StageSinks();

  void OnJobState(const wan::v1::Job& job, wan::v1::JobState previous) override;
  void OnModelState(const wan::v1::Model& model) override;
  void OnJobCancelled(const wan::v1::Job& job, StopCause cause) override;
  void OnJobRequeued(const wan::v1::Job& job, RequeueCause cause) override;
  void OnEstimateMet(const wan::v1::Job& job, const EstimateMet& met) override;
  void OnJobsRejected(const absl::Status& problem, int jobs) override;
  void OnStoreWrite(std::string_view operation, absl::Duration taken) override;
  void OnDeviceLost(DeviceLoss cause, const absl::Status& problem) override;
  void OnSavepoint(const wan::v1::Job& job, int steps_done, double seconds) override;
  void OnWebhook(const WebhookOutcome& outcome) override;
  void OnSpans(const SpansOutcome& outcome) override;
  void OnRetention(const RetentionRound& round) override;

  // Creates the counters of a method's calls with 0 for every code, so that rate() sees their first
  // increment. `path` is that of its MethodRule (gRPC or HTTP). Call it before the method's first
  // call ends.
  void AddMethod(std::string_view path);

  // Counts an ended call. `path` is that of its MethodRule; calls over HTTP and calls without a
  // rule are not counted.
  void OnCall(std::string_view path, const absl::Status& status, absl::Duration taken);
  // Counts an answer of the OpenAI video API.
  void OnHttpAnswer(std::string_view route, int code, absl::Duration taken);

  // Returns the source for MetricsServer. It stays valid after this object is destroyed.
  std::shared_ptr<const ScrapeSource> scrapes() const;

 private:
  struct Families;

  const std::shared_ptr<Families> families_;
};

}  // namespace wan::server
