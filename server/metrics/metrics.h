// What Prometheus sees of the server. Histograms and counters fill up from the Recorder's spans and
// the jobs' states; gauges are asked for when a scrape comes. docs/operations.md lists them all.
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

// The state of the server at the moment of a scrape.
struct MetricsSnapshot {
  JobStats jobs;
  std::vector<wan::v1::Model> models;
  std::vector<DeviceSample> devices;
  WireStats wire;
};

// Thread-safe.
class Metrics final : public StateListener {
 public:
  // Labels of wan_build_info.
  struct BuildInfo {
    std::string version;
    std::string device;  // "cuda:0"
    std::string dtype;   // "bf16"
  };

  explicit Metrics(const BuildInfo& build);
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;
  ~Metrics() override;

  // Where the gauges come from; called for each scrape, on its thread. Without one, as at first,
  // there are no gauges. Once this returns the source before is not running any more.
  void SetSource(std::function<MetricsSnapshot()> source);

  // Sinks that observe the seconds of stages and steps. The metrics must outlive them.
  SinkFactory StageSinks();

  void OnJobState(const wan::v1::Job& job, wan::v1::JobState previous) override;
  void OnModelState(const wan::v1::Model& model) override;

  // What a scrape collects.
  std::shared_ptr<prometheus::Collectable> collectable() const;

 private:
  class StageSink;
  struct Families;

  const std::shared_ptr<Families> families_;
};

}  // namespace wan::server
