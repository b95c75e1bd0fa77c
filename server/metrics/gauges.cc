#include "server/metrics/gauges.h"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/conversion/names.h"
#include "server/metrics/families.h"
#include "server/metrics/process_metrics.h"
#include "wan/v1/model_management.pb.h"

namespace wan::server {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;

constexpr char kCpu[] = "cpu";

void AddOne(const char* name, double value, std::vector<MetricFamily>& families) {
  ScrapedFamily family(name);
  family.Add({}, value);
  family.MoveTo(families);
}

void AddCounts(const char* name, const char* label, const std::map<std::string, int64_t>& counts,
               std::vector<MetricFamily>& families) {
  ScrapedFamily family(name);
  for (const auto& [value, count] : counts) {
    family.Add({{label, value}}, static_cast<double>(count));
  }
  family.MoveTo(families);
}

void AddServer(const MetricsSnapshot& snapshot, std::vector<MetricFamily>& families) {
  const JobStats& jobs = snapshot.jobs;
  ScrapedFamily states("wan_active_jobs");
  states.Add({{"state", "queued"}}, jobs.queued_total);
  states.Add({{"state", "running"}}, jobs.running_total);
  states.MoveTo(families);
  AddOne("wan_queue_capacity", jobs.queue_capacity, families);
  AddOne("wan_storage_writable", jobs.storage_writable ? 1 : 0, families);
  AddOne("wan_draining", jobs.draining ? 1 : 0, families);
  AddOne("wan_job_watchers", jobs.job_watchers, families);
  if (jobs.disk_free_bytes.has_value()) {
    AddOne("wan_disk_free_bytes", static_cast<double>(*jobs.disk_free_bytes), families);
  }
  AddOne("wan_disk_reserved_bytes", static_cast<double>(jobs.disk_reserved_bytes), families);
  if (snapshot.storage.artifact_bytes.has_value()) {
    AddOne("wan_artifact_bytes", static_cast<double>(*snapshot.storage.artifact_bytes), families);
  }
  AddOne("wan_database_bytes", static_cast<double>(snapshot.storage.database_bytes), families);
}

void AddQueue(const MetricsSnapshot& snapshot, std::vector<MetricFamily>& families) {
  // Report a queue length for every known model, even 0, and for unknown models for which jobs of
  // an earlier process wait.
  std::map<std::string, int> lengths = snapshot.jobs.queued;
  for (const wan::v1::Model& model : snapshot.models) {
    lengths.try_emplace(std::string(BareModelName(model.name())), 0);
  }
  ScrapedFamily length("wan_queue_length");
  ScrapedFamily oldest("wan_queue_oldest_seconds");
  ScrapedFamily seconds("wan_queued_seconds");
  ScrapedFamily unestimated("wan_queue_unestimated");
  const auto value_or_zero = [](const auto& values, const std::string& model) {
    const auto found = values.find(model);
    return found == values.end() ? decltype(found->second){} : found->second;
  };
  for (const auto& [model, count] : lengths) {
    length.Add({{"model", model}}, count);
    oldest.Add({{"model", model}},
               absl::ToDoubleSeconds(value_or_zero(snapshot.oldest_queued, model)));
    unestimated.Add({{"model", model}}, value_or_zero(snapshot.jobs.unestimated, model));
    const auto estimate = snapshot.jobs.queued_seconds.find(model);
    if (estimate != snapshot.jobs.queued_seconds.end()) {
      seconds.Add({{"model", model}}, estimate->second);
    } else if (count == 0) {
      seconds.Add({{"model", model}}, 0);
    }
  }
  length.MoveTo(families);
  oldest.MoveTo(families);
  seconds.MoveTo(families);
  unestimated.MoveTo(families);
}

void AddInFlight(const MetricsSnapshot& snapshot, std::vector<MetricFamily>& families) {
  using Labels = std::vector<ClientMetric::Label>;
  const auto labels = [](const InFlight& running) {
    return Labels{{"group", absl::StrCat(running.group)}, {"model", running.model}};
  };
  const auto add = [&](const char* name, const std::function<double(const InFlight&)>& value) {
    ScrapedFamily family(name);
    for (const InFlight& running : snapshot.in_flight) family.Add(labels(running), value(running));
    family.MoveTo(families);
  };
  add("wan_inflight_step", [](const InFlight& running) { return running.step; });
  add("wan_inflight_steps", [](const InFlight& running) { return running.steps; });
  add("wan_inflight_elapsed_seconds",
      [](const InFlight& running) { return absl::ToDoubleSeconds(running.elapsed); });
  add("wan_inflight_since_step_seconds",
      [](const InFlight& running) { return absl::ToDoubleSeconds(running.since_step); });
  ScrapedFamily stage("wan_inflight_stage_seconds");
  ScrapedFamily remaining("wan_inflight_remaining_seconds");
  for (const InFlight& running : snapshot.in_flight) {
    Labels of_stage = labels(running);
    of_stage.push_back({"quality", running.quality});
    of_stage.push_back({"stage", running.stage});
    stage.Add(std::move(of_stage), absl::ToDoubleSeconds(running.in_stage));
    const auto add_estimate = [&](const char* estimate, const std::optional<double>& left) {
      if (!left.has_value()) return;
      Labels of_estimate = labels(running);
      of_estimate.push_back({"estimate", estimate});
      remaining.Add(std::move(of_estimate), *left);
    };
    const auto group = static_cast<size_t>(running.group);
    if (group >= snapshot.jobs.groups.size()) continue;
    add_estimate("p50", snapshot.jobs.groups[group].left_p50);
    add_estimate("p90", snapshot.jobs.groups[group].left_p90);
  }
  stage.MoveTo(families);
  remaining.MoveTo(families);
}

void AddGroups(const JobStats& jobs, std::vector<MetricFamily>& families) {
  ScrapedFamily serving("wan_device_group_serving");
  for (size_t number = 0; number < jobs.groups.size(); ++number) {
    const JobStats::Group& group = jobs.groups[number];
    serving.Add({{"group", absl::StrCat(number)}, {"device", group.device}},
                group.problem.ok() ? 1 : 0);
  }
  serving.MoveTo(families);
}

void AddWire(const WireStats& wire, std::vector<MetricFamily>& families) {
  const struct {
    const char* name;
    int64_t value;
    bool known;
  } gauges[] = {
      {"wan_grpc_connections", wire.connections, true},
      {"wan_grpc_connections_limit", wire.connections_limit, true},
      {"wan_grpc_request_bytes", wire.request_bytes, true},
      {"wan_grpc_request_bytes_limit", wire.request_bytes_limit, true},
      {"wan_grpc_answer_bytes", wire.answer_bytes, true},
      {"wan_grpc_answer_bytes_limit", wire.answer_bytes_limit, true},
      {"wan_grpc_streams", wire.streams, true},
      {"wan_grpc_streams_limit", wire.streams_limit, true},
      {"wan_grpc_downloads", wire.downloads, true},
      {"wan_grpc_downloads_limit", wire.downloads_limit, true},
      {"wan_process_descriptors", wire.descriptors, wire.descriptors > 0},
      {"wan_process_descriptors_limit", wire.descriptors_limit, wire.descriptors_limit > 0},
  };
  for (const auto& row : gauges) {
    if (row.known) AddOne(row.name, static_cast<double>(row.value), families);
  }
  AddCounts("wan_grpc_refused_connections_total", "reason", wire.refused_connections, families);
  AddCounts("wan_grpc_misused_connections_total", "reason", wire.misused_connections, families);
  AddCounts("wan_grpc_refused_calls_total", "reason", wire.refused_calls, families);
}

void AddModels(const MetricsSnapshot& snapshot, std::vector<MetricFamily>& families) {
  ScrapedFamily ready("wan_model_ready");
  ScrapedFamily memory("wan_component_memory_bytes");
  for (const wan::v1::Model& model : snapshot.models) {
    const std::string name(BareModelName(model.name()));
    ready.Add({{"model", name}}, model.state() == wan::v1::MODEL_STATE_READY ? 1 : 0);
    // Add up the groups that share a device, because each holds its own weights; only CPU groups
    // share one.
    // The key is component and device.
    std::map<std::pair<std::string, std::string>, uint64_t> bytes;
    for (const wan::v1::ModelPlacement& placement : model.placements()) {
      for (const wan::v1::ModelComponent& component : placement.components()) {
        bytes[{component.name(), component.device()}] += component.bytes();
      }
    }
    for (const auto& [place, sum] : bytes) {
      memory.Add({{"model", name}, {"component", place.first}, {"device", place.second}},
                 static_cast<double>(sum));
    }
  }
  ready.MoveTo(families);
  memory.MoveTo(families);
}

// A member of DeviceSample, and the metric that shows its value.
template <typename Figure>
struct DeviceGauge {
  const char* name;
  std::optional<Figure> DeviceSample::*figure;
  double scale = 1;  // factor that converts the value to base units
};

constexpr double kMega = 1e6;

const DeviceGauge<double> kGpuRates[] = {
    {"wan_gpu_sm_activity_percent", &DeviceSample::sm_activity_percent},
    {"wan_gpu_sm_occupancy_percent", &DeviceSample::sm_occupancy_percent},
    {"wan_gpu_tensor_activity_percent", &DeviceSample::tensor_activity_percent},
    {"wan_gpu_dram_bandwidth_percent", &DeviceSample::dram_bandwidth_percent},
    {"wan_gpu_busy_seconds_total", &DeviceSample::sm_active_seconds},
    {"wan_gpu_energy_joules_total", &DeviceSample::energy_joules},
    {"wan_gpu_power_watts", &DeviceSample::power_watts},
    {"wan_gpu_temperature_celsius", &DeviceSample::temperature_celsius},
    {"wan_gpu_sm_clock_hertz", &DeviceSample::sm_clock_mhz, kMega},
    {"wan_gpu_memory_clock_hertz", &DeviceSample::memory_clock_mhz, kMega},
};

const DeviceGauge<int> kGpuNumbers[] = {{"wan_gpu_processes", &DeviceSample::processes}};

const DeviceGauge<uint64_t> kGpuBytes[] = {
    {"wan_gpu_memory_used_bytes", &DeviceSample::memory_used_bytes},
    {"wan_gpu_memory_total_bytes", &DeviceSample::memory_total_bytes},
    {"wan_gpu_allocator_bytes", &DeviceSample::allocator_bytes},
};

const DeviceGauge<double> kHostRates[] = {
    {"wan_cpu_percent", &DeviceSample::cpu_percent},
    {"wan_process_cpu_percent", &DeviceSample::process_cpu_percent},
};

const DeviceGauge<uint64_t> kHostBytes[] = {
    {"wan_system_memory_used_bytes", &DeviceSample::memory_used_bytes},
    {"wan_system_memory_total_bytes", &DeviceSample::memory_total_bytes},
    {"wan_process_memory_bytes", &DeviceSample::process_memory_bytes},
    {"wan_process_memory_peak_bytes", &DeviceSample::process_memory_peak_bytes},
};

// The labels have the names of DCGM's exporter, so that the metrics of both can be joined.
std::vector<ClientMetric::Label> LabelsOf(const DeviceSample& gpu) {
  return {{"device", gpu.device}, {"name", gpu.name}, {"UUID", gpu.uuid}};
}

void AddThrottling(const std::vector<DeviceSample>& samples, std::vector<MetricFamily>& families) {
  ScrapedFamily throttled("wan_gpu_throttled_seconds_total");
  for (const DeviceSample& gpu : samples) {
    for (const auto& [reason, seconds] : gpu.throttled_seconds_by_reason) {
      std::vector<ClientMetric::Label> labels = LabelsOf(gpu);
      labels.push_back({"reason", reason});
      throttled.Add(std::move(labels), seconds);
    }
  }
  throttled.MoveTo(families);
}

void AddSums(const MetricsSnapshot& snapshot, std::vector<MetricFamily>& families) {
  ScrapedFamily tensor("wan_gpu_tensor_seconds_total");
  ScrapedFamily dram("wan_gpu_dram_seconds_total");
  for (const DeviceSample& gpu : snapshot.devices) {
    const auto found = snapshot.gpu_sums.find(gpu.device);
    if (gpu.device == kCpu || found == snapshot.gpu_sums.end()) continue;
    const GpuSums& sums = found->second;
    if (sums.tensor_seconds.has_value()) tensor.Add(LabelsOf(gpu), *sums.tensor_seconds);
    if (sums.dram_seconds.has_value()) dram.Add(LabelsOf(gpu), *sums.dram_seconds);
  }
  tensor.MoveTo(families);
  dram.MoveTo(families);
}

enum class Devices { kGpus, kHost };

template <typename Table>
void AddDevices(const std::vector<DeviceSample>& samples, Devices which, const Table& table,
                std::vector<MetricFamily>& families) {
  for (const auto& row : table) {
    ScrapedFamily gauge(row.name);
    for (const DeviceSample& sample : samples) {
      const bool gpu = sample.device != kCpu;
      const auto& figure = sample.*row.figure;
      if (gpu != (which == Devices::kGpus) || !figure.has_value()) continue;
      std::vector<ClientMetric::Label> labels;
      if (gpu) labels = LabelsOf(sample);
      gauge.Add(std::move(labels), static_cast<double>(*figure) * row.scale);
    }
    gauge.MoveTo(families);
  }
}

}  // namespace

std::vector<MetricFamily> GaugesOf(const MetricsSnapshot& snapshot) {
  std::vector<MetricFamily> families;
  AddServer(snapshot, families);
  AddQueue(snapshot, families);
  AddInFlight(snapshot, families);
  AddGroups(snapshot.jobs, families);
  AddWire(snapshot.wire, families);
  AddModels(snapshot, families);
  AddDevices(snapshot.devices, Devices::kGpus, kGpuRates, families);
  AddDevices(snapshot.devices, Devices::kGpus, kGpuBytes, families);
  AddDevices(snapshot.devices, Devices::kGpus, kGpuNumbers, families);
  AddSums(snapshot, families);
  AddThrottling(snapshot.devices, families);
  AddDevices(snapshot.devices, Devices::kHost, kHostRates, families);
  AddDevices(snapshot.devices, Devices::kHost, kHostBytes, families);
  AddProcess(snapshot.wire, families);
  AddCounts("wan_log_dropped_lines_total", "log", snapshot.dropped_lines, families);
  return families;
}

}  // namespace wan::server
