#include "server/metrics/gauges.h"

#include <prometheus/metric_family.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "server/conversion/names.h"
#include "wan/v1/model_management.pb.h"

namespace wan::server {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;

constexpr char kCpu[] = "cpu";

// Builds one family of gauges.
class Gauge {
 public:
  Gauge(std::string name, std::string help) {
    family_.name = std::move(name);
    family_.help = std::move(help);
    family_.type = prometheus::MetricType::Gauge;
  }

  void Add(std::vector<ClientMetric::Label> labels, double value) {
    ClientMetric metric;
    metric.label = std::move(labels);
    metric.gauge.value = value;
    family_.metric.push_back(std::move(metric));
  }

  void MoveTo(std::vector<MetricFamily>& families) {
    if (!family_.metric.empty()) families.push_back(std::move(family_));
  }

 private:
  MetricFamily family_;
};

void AddQueue(const MetricsSnapshot& snapshot, std::vector<MetricFamily>& families) {
  Gauge jobs("wan_jobs", "Jobs that wait (queued) or run (running) now.");
  jobs.Add({{"state", "queued"}}, snapshot.jobs.queued_total);
  jobs.Add({{"state", "running"}}, snapshot.jobs.running_total);
  jobs.MoveTo(families);

  Gauge capacity("wan_queue_capacity", "Most jobs that may wait.");
  capacity.Add({}, snapshot.jobs.queue_capacity);
  capacity.MoveTo(families);

  Gauge storage("wan_storage_writable",
                "1 if the data folder takes writes; at 0 no job is accepted or begun.");
  storage.Add({}, snapshot.jobs.storage_writable ? 1 : 0);
  storage.MoveTo(families);

  Gauge draining("wan_draining",
                 "1 if the server is being drained or stopped: no job is accepted or begun.");
  draining.Add({}, snapshot.jobs.draining ? 1 : 0);
  draining.MoveTo(families);
  Gauge free("wan_disk_free_bytes", "Free bytes of the data folder's disk.");
  if (snapshot.jobs.disk_free_bytes.has_value()) {
    free.Add({}, static_cast<double>(*snapshot.jobs.disk_free_bytes));
  }
  free.MoveTo(families);
  Gauge reserved("wan_disk_reserved_bytes",
                 "Bytes that must be free for the accepted jobs and disk_reserve.");
  reserved.Add({}, static_cast<double>(snapshot.jobs.disk_reserved_bytes));
  reserved.MoveTo(families);

  // Every known model has a length, even if it is 0. Jobs of an earlier process may also wait for a
  // model that is no longer known.
  std::map<std::string, int> lengths = snapshot.jobs.queued;
  for (const wan::v1::Model& model : snapshot.models) {
    lengths.try_emplace(std::string(BareModelName(model.name())), 0);
  }
  Gauge length("wan_queue_length", "Jobs that wait, by model.");
  Gauge seconds("wan_queued_seconds",
                "Estimated seconds of execution that wait, by model; absent while the jobs that "
                "wait cannot be estimated.");
  for (const auto& [model, count] : lengths) {
    length.Add({{"model", model}}, count);
    const auto estimate = snapshot.jobs.queued_seconds.find(model);
    if (estimate != snapshot.jobs.queued_seconds.end()) {
      seconds.Add({{"model", model}}, estimate->second);
    } else if (count == 0) {
      seconds.Add({{"model", model}}, 0);
    }
  }
  length.MoveTo(families);
  seconds.MoveTo(families);
}

MetricFamily Counter(std::string name, std::string help,
                     const std::map<std::string, int64_t>& by_reason) {
  MetricFamily family;
  family.name = std::move(name);
  family.help = std::move(help);
  family.type = prometheus::MetricType::Counter;
  for (const auto& [reason, count] : by_reason) {
    ClientMetric metric;
    metric.label = {{"reason", reason}};
    metric.counter.value = static_cast<double>(count);
    family.metric.push_back(std::move(metric));
  }
  return family;
}

void AddWire(const WireStats& wire, std::vector<MetricFamily>& families) {
  const struct {
    const char* name;
    const char* help;
    int64_t value;
    bool known;
  } gauges[] = {
      {"wan_grpc_connections", "Open connections of the gRPC port.", wire.connections, true},
      {"wan_grpc_connections_limit", "Most open connections of the gRPC port.",
       wire.connections_limit, true},
      {"wan_grpc_request_bytes", "Bytes of requests that the server reads or works on.",
       wire.request_bytes, true},
      {"wan_grpc_request_bytes_limit", "Most bytes of requests that the server reads or works on.",
       wire.request_bytes_limit, true},
      {"wan_grpc_streams", "Open streams of every kind.", wire.streams, true},
      {"wan_grpc_streams_limit", "Most open streams.", wire.streams_limit, true},
      {"wan_grpc_downloads", "Open downloads.", wire.downloads, true},
      {"wan_grpc_downloads_limit", "Most open downloads.", wire.downloads_limit, true},
      {"wan_process_descriptors", "Open file descriptors of the process.", wire.descriptors,
       wire.descriptors > 0},
      {"wan_process_descriptors_limit", "Most open file descriptors of the process.",
       wire.descriptors_limit, wire.descriptors_limit > 0},
  };
  for (const auto& row : gauges) {
    Gauge gauge(row.name, row.help);
    if (row.known) gauge.Add({}, static_cast<double>(row.value));
    gauge.MoveTo(families);
  }
  families.push_back(Counter("wan_grpc_refused_connections_total",
                             "Connections that were closed at once, by reason.",
                             wire.refused_connections));
  families.push_back(Counter("wan_grpc_refused_calls_total",
                             "Calls that were refused because the server was too busy, by reason.",
                             wire.refused_calls));
}

void AddModels(const MetricsSnapshot& snapshot, std::vector<MetricFamily>& families) {
  Gauge ready("wan_model_ready", "1 if the model is resident and warm, else 0.");
  Gauge memory("wan_component_memory_bytes", "Bytes of a resident component's weights.");
  for (const wan::v1::Model& model : snapshot.models) {
    const std::string name(BareModelName(model.name()));
    ready.Add({{"model", name}}, model.state() == wan::v1::MODEL_STATE_READY ? 1 : 0);
    for (const wan::v1::ModelComponent& component : model.components()) {
      memory.Add({{"model", name}, {"component", component.name()}, {"device", component.device()}},
                 static_cast<double>(component.bytes()));
    }
  }
  ready.MoveTo(families);
  memory.MoveTo(families);
}

// A member of DeviceSample and the metric that shows it.
template <typename Figure>
struct DeviceGauge {
  const char* name;
  const char* help;
  std::optional<Figure> DeviceSample::*figure;
  double scale = 1;  // to base units
};

constexpr double kMega = 1e6;

const DeviceGauge<double> kGpuRates[] = {
    {"wan_gpu_sm_activity_percent", "SM activity of the GPU, 0 to 100.",
     &DeviceSample::sm_activity_percent},
    {"wan_gpu_power_watts", "Power that the GPU draws.", &DeviceSample::power_watts},
    {"wan_gpu_temperature_celsius", "Temperature of the GPU.", &DeviceSample::temperature_celsius},
    {"wan_gpu_sm_clock_hertz", "Clock of the GPU's multiprocessors.", &DeviceSample::sm_clock_mhz,
     kMega},
    {"wan_gpu_memory_clock_hertz", "Clock of the GPU's memory.", &DeviceSample::memory_clock_mhz,
     kMega},
};

const DeviceGauge<uint64_t> kGpuBytes[] = {
    {"wan_gpu_memory_used_bytes", "Memory in use on the GPU, by all processes.",
     &DeviceSample::memory_used_bytes},
    {"wan_gpu_memory_total_bytes", "Memory of the GPU.", &DeviceSample::memory_total_bytes},
    {"wan_gpu_allocator_bytes", "Memory that the engine's allocator holds on the GPU.",
     &DeviceSample::allocator_bytes},
};

const DeviceGauge<double> kHostRates[] = {
    {"wan_cpu_percent", "Mean use of all CPU cores of the machine, 0 to 100.",
     &DeviceSample::cpu_percent},
    {"wan_process_cpu_percent", "The part of wan_cpu_percent that the server used, 0 to 100.",
     &DeviceSample::process_cpu_percent},
};

const DeviceGauge<uint64_t> kHostBytes[] = {
    {"wan_system_memory_used_bytes", "Memory in use on the machine.",
     &DeviceSample::memory_used_bytes},
    {"wan_system_memory_total_bytes", "Memory of the machine.", &DeviceSample::memory_total_bytes},
    {"wan_process_memory_bytes", "Resident memory of the server.",
     &DeviceSample::process_memory_bytes},
    {"wan_process_memory_peak_bytes", "Peak resident memory of the server since its start.",
     &DeviceSample::process_memory_peak_bytes},
};

enum class Devices { kGpus, kHost };

template <typename Table>
void AddDevices(const std::vector<DeviceSample>& samples, Devices which, const Table& table,
                std::vector<MetricFamily>& families) {
  for (const auto& row : table) {
    Gauge gauge(row.name, row.help);
    for (const DeviceSample& sample : samples) {
      const bool gpu = sample.device != kCpu;
      const auto& figure = sample.*row.figure;
      if (gpu != (which == Devices::kGpus) || !figure.has_value()) continue;
      std::vector<ClientMetric::Label> labels;
      if (gpu) labels = {{"device", sample.device}, {"name", sample.name}};
      gauge.Add(std::move(labels), static_cast<double>(*figure) * row.scale);
    }
    gauge.MoveTo(families);
  }
}

}  // namespace

std::vector<MetricFamily> GaugesOf(const MetricsSnapshot& snapshot) {
  std::vector<MetricFamily> families;
  AddQueue(snapshot, families);
  AddWire(snapshot.wire, families);
  AddModels(snapshot, families);
  AddDevices(snapshot.devices, Devices::kGpus, kGpuRates, families);
  AddDevices(snapshot.devices, Devices::kGpus, kGpuBytes, families);
  AddDevices(snapshot.devices, Devices::kHost, kHostRates, families);
  AddDevices(snapshot.devices, Devices::kHost, kHostBytes, families);
  return families;
}

}  // namespace wan::server
