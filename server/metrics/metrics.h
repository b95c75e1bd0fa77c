// The server's metrics for Prometheus; catalog.cc and docs/operate/metrics.md list them. Spans and
// state changes update the histograms and counters; the gauges are read at each scrape.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/api/clock.h"
#include "engine/api/device_monitor.h"
#include "server/jobs/job_service.h"
#include "server/metrics/gpu_meter.h"
#include "server/metrics/stage_meter.h"
#include "server/metrics/wire_stats.h"
#include "server/objects/object_request.h"
#include "server/watch/listener.h"

namespace wan::server {

class ScrapeSource;

// The values of all gauges at a scrape.
struct MetricsSnapshot {
  JobStats jobs;
  std::vector<wan::v1::Model> models;
  std::vector<DeviceSample> devices;
  WireStats wire;
  StorageStats storage;
  std::map<std::string, GpuSums> gpu_sums;  // the key is the device
  // Number of lines that each log has dropped since the start; the keys are "server" and "audit".
  std::map<std::string, int64_t> dropped_lines;
  // Metrics itself fills in the following two members.
  std::vector<InFlight> in_flight;                      // one entry for each busy device group
  std::map<std::string, absl::Duration> oldest_queued;  // the key is the model
};

// Thread-safe.
class Metrics final : public StateListener {
 public:
  // The labels of the metric wan_build_info.
  struct BuildInfo {
    std::string version;
    std::string revision;   // the commit that was built; empty if unknown
    std::string device;     // for example "cuda:0"
    std::string dtype;      // for example "bf16"
    std::string libraries;  // the compute libraries with their versions
    std::string grpc;       // the driver's version
  };

  // `clock` must outlive the object and the result of scrapes().
  Metrics(const BuildInfo& build, Clock& clock);
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;
  ~Metrics() override;

  // Sets the function that reads the gauges' values; ScrapeSource::Collect calls the function. If
  // `source` is null, there are no gauges. The previous function is not running any more when
  // SetSource returns.
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
  // increment. `path` is the path in the method's MethodRule (gRPC or HTTP). Call AddMethod before
  // the first call of the method ends.
  void AddMethod(std::string_view path);

  // Counts a call that has ended. `path` is the path in the method's MethodRule; calls over HTTP
  // and calls without a rule are not counted.
  void OnCall(std::string_view path, const absl::Status& status, absl::Duration taken);
  // Counts an answer of the OpenAI video API.
  void OnHttpAnswer(std::string_view route, int code, absl::Duration taken);

  // Creates the counters of requests to the object store with 0; call it if the store is a bucket.
  void AddObjects();
  // Counts a request to the bucket.
  void OnObjectRequest(const ObjectRequest& request);

  // Returns the source for MetricsServer. The source stays valid after this object is destroyed.
  std::shared_ptr<const ScrapeSource> scrapes() const;

 private:
  struct Families;

  const std::shared_ptr<Families> families_;
};

}  // namespace wan::server
