#include "server/metrics/catalog.h"

#include <cstdio>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace wan::server {
namespace {

using enum MetricType;

constexpr MetricRow kJobRows[] = {
    {"wan_active_jobs", kGauge, "", "state", "Jobs that wait (queued) or run (running) now."},
    {"wan_jobs_total", kCounter, "", "model, quality, state",
     "Jobs that ended, by final state: completed, failed, cancelled."},
    {"wan_jobs_rejected_total", kCounter, "", "reason", "Refused jobs, by the error's reason."},
    {"wan_job_failures_total", kCounter, "", "model, reason",
     "Jobs that ended as FAILED, by the error's reason."},
    {"wan_job_cancels_total", kCounter, "", "model, reason",
     "Cancelled jobs: by a call (cancelled), at their deadline (deadline), or because their caller "
     "went away (caller_gone)."},
    {"wan_job_requeues_total", kCounter, "", "model, reason",
     "Jobs that went back to the queue: the server stopped (stopped), another job took over "
     "(preempted), process or device was lost (lost), or the data folder took no writes "
     "(storage)."},
    {"wan_job_seconds", kHistogram, "seconds", "model, quality, state",
     "Seconds from a job's acceptance to its end. Qualities but exact exist from their first job "
     "on."},
    {"wan_stop_seconds", kHistogram, "seconds", "model",
     "Seconds from a stop request until the device was free; the goal is 0.5 at most."},
    {"wan_eta_ratio", kHistogram, "ratio", "estimate, model",
     "Time of a completed job, divided by its estimate: p50 is the median, p90 what nine of ten "
     "jobs should not exceed."},
    {"wan_savepoint_seconds", kHistogram, "seconds", "model",
     "Seconds to write a job's savepoint, beside its steps."},
    {"wan_webhook_attempts_total", kCounter, "", "result",
     "Attempts to report a job's end to a webhook: delivered, retried, given_up."},
    {"wan_trace_spans_total", kCounter, "", "result",
     "Spans of jobs: exported, failed (the collector refused them or could not be reached), "
     "dropped (too many waited)."},
};

constexpr MetricRow kQueueRows[] = {
    {"wan_queue_length", kGauge, "", "model", "Waiting jobs."},
    {"wan_queue_capacity", kGauge, "", "", "Most jobs that may wait."},
    {"wan_queue_oldest_seconds", kGauge, "seconds", "model",
     "Seconds that the oldest waiting job has waited; 0 if none waits."},
    {"wan_queued_seconds", kGauge, "seconds", "model",
     "Estimated seconds of execution of the waiting jobs; absent while none can be estimated."},
    {"wan_queue_unestimated", kGauge, "", "model",
     "Waiting jobs that wan_queued_seconds leaves out, until their model is ready."},
    {"wan_draining", kGauge, "", "",
     "1 while the server drains or stops: no job is accepted or begun."},
};

constexpr MetricRow kRunRows[] = {
    {"wan_inflight_step", kGauge, "", "group, model", "Steps that the running job has done."},
    {"wan_inflight_steps", kGauge, "", "group, model", "Steps of the running job."},
    {"wan_inflight_elapsed_seconds", kGauge, "seconds", "group, model",
     "Seconds since the running attempt began."},
    {"wan_inflight_remaining_seconds", kGauge, "seconds", "estimate, group, model",
     "Estimated seconds until the running job ends (p50, p90); absent while unknown."},
    {"wan_inflight_since_step_seconds", kGauge, "seconds", "group, model",
     "Seconds since the running job's latest step ended; before its first, since the attempt "
     "began."},
    {"wan_inflight_stage_seconds", kGauge, "seconds", "group, model, quality, stage",
     "Seconds since the running job's current stage began."},
    {"wan_execution_seconds_total", kCounter, "seconds", "model, quality, stage",
     "Seconds of all attempts by stage. Every moment counts for one stage: where stages overlap, "
     "for the one that computes; between stages, for Other."},
    {"wan_attempt_seconds_total", kCounter, "seconds", "model, outcome",
     "Seconds of attempts by outcome: completed, failed, stopped (cancelled or put back into the "
     "queue)."},
    {"wan_stage_seconds", kHistogram, "seconds", "model, quality, stage",
     "Seconds of stages that succeeded. Stages may overlap; wan_execution_seconds_total adds up."},
    {"wan_step_seconds", kHistogram, "seconds", "expert, model, quality, shape",
     "Seconds of one denoising step. shape is WIDTHxHEIGHTxFRAMES; beyond the first 32 of a "
     "process it is 'other'."},
    {"wan_stage_flops_total", kCounter, "operations", "model, quality, stage",
     "Planned floating-point operations of stages that succeeded."},
    {"wan_step_flops_total", kCounter, "operations", "expert, model, quality, shape",
     "Floating-point operations of the steps that wan_step_seconds counts."},
};

constexpr MetricRow kModelRows[] = {
    {"wan_model_ready", kGauge, "", "model", "1 if the model is resident and warm, else 0."},
    {"wan_component_memory_bytes", kGauge, "bytes", "component, device, model",
     "Bytes of a resident component's weights."},
};

constexpr MetricRow kStorageRows[] = {
    {"wan_storage_writable", kGauge, "", "",
     "1 if the data folder takes writes; at 0 no job is accepted or begun."},
    {"wan_disk_free_bytes", kGauge, "bytes", "", "Free bytes of the data folder's disk."},
    {"wan_disk_reserved_bytes", kGauge, "bytes", "",
     "Bytes that must be free for the accepted jobs and disk_reserve; while fewer are free, jobs "
     "are refused."},
    {"wan_artifact_bytes", kGauge, "bytes", "", "Bytes of the files of ended jobs."},
    {"wan_database_bytes", kGauge, "bytes", "", "Bytes of the job database and its log."},
    {"wan_store_write_seconds", kHistogram, "seconds", "operation",
     "Seconds of a synced transaction of the job database: insert (new jobs), apply (their "
     "changes), remove, vacuum, webhook, check (a probe)."},
    {"wan_retention_removed_total", kCounter, "", "reason, what",
     "Ended jobs (jobs) or only their files (files) that retention removed, by limit: age, bytes, "
     "count."},
    {"wan_retention_removed_bytes_total", kCounter, "bytes", "reason, what",
     "Bytes that retention removed, by limit."},
};

constexpr MetricRow kObjectRows[] = {
    {"wan_object_requests_total", kCounter, "", "operation, outcome",
     "Requests to the object store: put, get, stat, list, remove, multipart; and how they ended: "
     "ok, not_found, refused, failed (the store fails or is too busy), unreachable. The server "
     "repeats the last two."},
    {"wan_object_request_seconds", kHistogram, "seconds", "operation",
     "Seconds of these requests."},
    {"wan_object_bytes_total", kCounter, "bytes", "direction",
     "Bytes of their bodies: sent, received."},
};

constexpr MetricRow kWireRows[] = {
    {"wan_grpc_calls_total", kCounter, "", "code, method",
     "Ended gRPC calls, by SERVICE/METHOD and status code; all exist from the start. Unknown "
     "methods are not counted."},
    {"wan_http_requests_total", kCounter, "", "code, route",
     "Answered requests of the OpenAI video API, by route and HTTP code; all exist from the start. "
     "'other' is every unknown path."},
    {"wan_grpc_call_seconds", kHistogram, "seconds", "code, method",
     "Seconds of gRPC calls; a stream counts when it ends. Codes other than OK exist from their "
     "first call on."},
    {"wan_http_request_seconds", kHistogram, "seconds", "code, route",
     "Seconds until requests of the OpenAI video API were answered. Codes other than 200 exist "
     "from their first answer on."},
    {"wan_job_watchers", kGauge, "", "", "Callers that follow a job's events now."},
    {"wan_grpc_connections", kGauge, "", "", "Open connections of the gRPC port."},
    {"wan_grpc_connections_limit", kGauge, "", "", "Limit of wan_grpc_connections."},
    {"wan_grpc_refused_connections_total", kCounter, "", "reason",
     "Connections closed at once: too many from one address (address) or in all (total), no "
     "descriptor left (descriptors)."},
    {"wan_grpc_misused_connections_total", kCounter, "", "reason",
     "Connections whose caller broke a rule: not HTTP/2 (protocol), headers of a call too large "
     "(header_block), too many open calls (streams) or reset calls (resets), or too many of either "
     "from one address (address)."},
    {"wan_grpc_request_bytes", kGauge, "bytes", "",
     "Bytes of requests over 64 KiB in work, over gRPC and HTTP."},
    {"wan_grpc_request_bytes_limit", kGauge, "bytes", "", "Limit of wan_grpc_request_bytes."},
    {"wan_grpc_answer_bytes", kGauge, "bytes", "",
     "Bytes of answers and messages over 16 KiB that callers have not taken yet, over gRPC and "
     "HTTP."},
    {"wan_grpc_answer_bytes_limit", kGauge, "bytes", "", "Limit of wan_grpc_answer_bytes."},
    {"wan_grpc_streams", kGauge, "", "", "Open streams of every kind."},
    {"wan_grpc_streams_limit", kGauge, "", "", "Limit of wan_grpc_streams."},
    {"wan_grpc_downloads", kGauge, "", "", "Open downloads."},
    {"wan_grpc_downloads_limit", kGauge, "", "", "Limit of wan_grpc_downloads."},
    {"wan_grpc_refused_calls_total", kCounter, "", "reason",
     "Calls refused with SERVER_BUSY, by the share that the caller held: requests and their bytes "
     "(requests), bytes of answers (answers), streams, downloads, what calls without credentials "
     "may have (public)."},
};

constexpr MetricRow kGpuRows[] = {
    {"wan_gpu_sm_activity_percent", kGauge, "percent", "UUID, device, name",
     "SM activity within the last second (GPM where the card has it, else NVML utilisation)."},
    {"wan_gpu_sm_occupancy_percent", kGauge, "percent", "UUID, device, name",
     "Resident warps as a share of the most possible, within the last second; from GPM, like the "
     "next two."},
    {"wan_gpu_tensor_activity_percent", kGauge, "percent", "UUID, device, name",
     "Share of the last second in which tensor cores computed."},
    {"wan_gpu_dram_bandwidth_percent", kGauge, "percent", "UUID, device, name",
     "Used share of the memory's highest bandwidth within the last second."},
    {"wan_gpu_busy_seconds_total", kCounter, "seconds", "UUID, device, name",
     "Integral of the SM activity: rate() gives its mean as a share."},
    {"wan_gpu_tensor_seconds_total", kCounter, "seconds", "UUID, device, name",
     "Integral of the tensor activity; from GPM, like the next one."},
    {"wan_gpu_dram_seconds_total", kCounter, "seconds", "UUID, device, name",
     "Integral of the used share of the memory's bandwidth."},
    {"wan_gpu_memory_used_bytes", kGauge, "bytes", "UUID, device, name",
     "Memory in use, by all processes."},
    {"wan_gpu_memory_total_bytes", kGauge, "bytes", "UUID, device, name", "Memory of the GPU."},
    {"wan_gpu_allocator_bytes", kGauge, "bytes", "UUID, device, name",
     "Memory that the engine's allocator holds."},
    {"wan_gpu_power_watts", kGauge, "watts", "UUID, device, name", "Power within the last second."},
    {"wan_gpu_energy_joules_total", kCounter, "joules", "UUID, device, name",
     "Energy since the server started."},
    {"wan_gpu_temperature_celsius", kGauge, "celsius", "UUID, device, name",
     "Temperature of the GPU."},
    {"wan_gpu_sm_clock_hertz", kGauge, "hertz", "UUID, device, name",
     "Clock of the multiprocessors."},
    {"wan_gpu_memory_clock_hertz", kGauge, "hertz", "UUID, device, name", "Clock of the memory."},
    {"wan_gpu_throttled_seconds_total", kCounter, "seconds", "UUID, device, name, reason",
     "Seconds in which clocks were held down, by reason ('power cap', 'temperature' and so on); "
     "several may hold at once."},
    {"wan_gpu_processes", kGauge, "", "UUID, device, name",
     "Processes with compute contexts on the GPU, the server included."},
    {"wan_device_group_serving", kGauge, "", "device, group",
     "1 while the device group serves, 0 once one of its devices is lost. group is its number in "
     "the order of the settings."},
    {"wan_device_lost", kGauge, "", "cause",
     "1 after the last group's device was lost, by cause: an error of the driver (error) or a "
     "failed canary (canary); else 0."},
};

constexpr MetricRow kHostRows[] = {
    {"wan_cpu_percent", kGauge, "percent", "", "Mean use of all CPU cores of the machine."},
    {"wan_process_cpu_percent", kGauge, "percent", "", "The server's part of wan_cpu_percent."},
    {"wan_system_memory_used_bytes", kGauge, "bytes", "",
     "Memory in use on the machine, or in the container if its limit leaves less."},
    {"wan_system_memory_total_bytes", kGauge, "bytes", "", "Memory of the machine, or that limit."},
    {"wan_process_memory_bytes", kGauge, "bytes", "", "Resident memory of the server."},
    {"wan_process_memory_peak_bytes", kGauge, "bytes", "",
     "Peak resident memory of the server since its start."},
    {"wan_process_descriptors", kGauge, "", "", "Open file descriptors of the process."},
    {"wan_process_descriptors_limit", kGauge, "", "",
     "Limit of wan_process_descriptors (RLIMIT_NOFILE)."},
    {"process_cpu_seconds_total", kCounter, "seconds", "",
     "Total user and system CPU time spent in seconds."},
    {"process_open_fds", kGauge, "", "", "Number of open file descriptors."},
    {"process_max_fds", kGauge, "", "", "Maximum number of open file descriptors."},
    {"process_virtual_memory_bytes", kGauge, "bytes", "", "Virtual memory size in bytes."},
    {"process_resident_memory_bytes", kGauge, "bytes", "", "Resident memory size in bytes."},
    {"process_start_time_seconds", kGauge, "seconds", "",
     "Start time of the process since unix epoch in seconds."},
    {"process_threads", kGauge, "", "", "Number of OS threads in the process."},
    {"wan_log_dropped_lines_total", kCounter, "", "log",
     "Dropped log lines, because their reader stood still: of stderr (server), of audit_log "
     "(audit)."},
    {"wan_build_info", kGauge, "", "device, dtype, grpc, libraries, revision, version",
     "Always 1; the labels show the build, the device and the dtype."},
};

constexpr MetricSection kSections[] = {
    {"Jobs", kJobRows},
    {"Queue", kQueueRows},
    {"Execution", kRunRows},
    {"Models", kModelRows},
    {"Data folder", kStorageRows},
    {"Object store", kObjectRows},
    {"Calls", kWireRows},
    {"GPUs", kGpuRows},
    {"Process and machine", kHostRows},
};

}  // namespace

std::string_view NameOf(MetricType type) {
  switch (type) {
    case kCounter:
      return "counter";
    case kGauge:
      return "gauge";
    case kHistogram:
      return "histogram";
  }
  return "";
}

std::span<const MetricSection> MetricSections() { return kSections; }

const MetricRow* FindRow(std::string_view name) {
  for (const MetricSection& section : kSections) {
    for (const MetricRow& row : section.rows) {
      if (row.name == name) return &row;
    }
  }
  return nullptr;
}

const MetricRow& RowOf(std::string_view name) {
  if (const MetricRow* const row = FindRow(name)) return *row;
  std::fprintf(stderr, "server/metrics/catalog.cc has no row for %.*s\n",
               static_cast<int>(name.size()), name.data());
  std::abort();
}

std::string MetricTables() {
  std::string page;
  for (const MetricSection& section : kSections) {
    absl::StrAppend(&page, page.empty() ? "" : "\n", "## ", std::string(section.title),
                    "\n\n| metric | meaning |\n| --- | --- |\n");
    for (const MetricRow& row : section.rows) {
      if (row.name.starts_with("process_")) continue;  // standard metrics of all clients
      std::string labels;
      if (!row.labels.empty()) {
        labels =
            absl::StrCat("{", absl::StrReplaceAll(std::string(row.labels), {{", ", ","}}), "}");
      }
      // Name only the type histogram, because the names of counters and gauges show their type.
      absl::StrAppend(&page, "| `", std::string(row.name), labels, "`",
                      row.type == kHistogram ? " (histogram) | " : " | ", std::string(row.help),
                      " |\n");
    }
  }
  return page;
}

}  // namespace wan::server
