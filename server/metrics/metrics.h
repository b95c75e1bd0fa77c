// The server's metrics for Prometheus; the catalog and docs/operate/metrics.md list them all.
// Histograms and counters grow with the Recorder's spans and the jobs' states. Gauges are read when
// a scrape comes.
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

// The values of the gauges, read at the moment of a scrape.
struct MetricsSnapshot {
  JobStats jobs;
  std::vector<wan::v1::Model> models;
  std::vector<DeviceSample> devices;
  WireStats wire;
  StorageStats storage;
  std::map<std::string, GpuSums> gpu_sums;  // by device
  // Lines that the logs have dropped since the start, by log: "server", "audit".
  std::map<std::string, int64_t> dropped_lines;
  // Metrics adds these two itself.
  std::vector<InFlight> in_flight;                      // by group
  std::map<std::string, absl::Duration> oldest_queued;  // by model
};

// Thread-safe.
class Metrics final : public StateListener {
 public:
  // The labels of wan_build_info.
  struct BuildInfo {
    std::string version;
    std::string revision;   // the commit; empty if the build does not know it
    std::string device;     // "cuda:0"
    std::string dtype;      // "bf16"
    std::string libraries;  // libraries that compute, with their versions
    std::string grpc;       // the driver's version
  };

  // `clock` must outlive the object and what scrapes() returns.
  Metrics(const BuildInfo& build, Clock& clock);
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;
  ~Metrics() override;

  // Sets the function that reads the gauges' values. It is called at each ScrapeSource::Collect, by
  // its thread. Until the first call, and after SetSource(nullptr), there are no gauges. After this
  // returns, the previous source does not run any more.
  void SetSource(std::function<MetricsSnapshot()> source);

  // Returns a factory of sinks that observe the seconds of stages and steps. This object must
  // outlive them.
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

  // Makes the counters of a method's calls at 0, for every code, so that rate() sees their first
  // increment. `path` is its MethodRule's, for gRPC or HTTP. Call it before the first call of the
  // method ends.
  void AddMethod(std::string_view path);

  // Counts a call that has ended. `path` is its MethodRule's; calls over HTTP and calls without a
  // rule are not counted.
  void OnCall(std::string_view path, const absl::Status& status, absl::Duration taken);
  // Counts an answer of the OpenAI video API.
  void OnHttpAnswer(std::string_view route, int code, absl::Duration taken);

  // Returns what MetricsServer serves. It stays valid after this object is destroyed.
  std::shared_ptr<const ScrapeSource> scrapes() const;

 private:
  struct Families;

  const std::shared_ptr<Families> families_;
};

}  // namespace wan::server
