#include "server/metrics/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <optional>
#include <set>

#include "absl/strings/str_cat.h"
#include "engine/api/recorder.h"
#include "server/metrics/catalog.h"
#include "server/metrics/exposition.h"
#include "server/objects/object_request.h"
#include "tests/fakes/fake_clock.h"
#include "tests/fakes/fake_device_monitor.h"
#include "tests/support/prometheus_text.h"
#include "wan/v1/generation.pb.h"
#include "wan/v1/model_management.pb.h"

namespace wan::server {
namespace {

using support::PrometheusText;

class MetricsTest : public ::testing::Test {
 protected:
  std::string Text(MetricFormat format = MetricFormat::kText) const {
    return WriteMetrics(metrics_.scrapes()->Collect(), format);
  }

  PrometheusText Scrape() const {
    const std::string text = Text();
    auto parsed = PrometheusText::Parse(text);
    EXPECT_TRUE(parsed.ok()) << parsed.status() << "\n" << text;
    return parsed.ok() ? *std::move(parsed) : PrometheusText();
  }

  // One attempt of a job of model "m".
  void RecordJob() {
    const auto sink = metrics_.StageSinks()({"m", "jobs/secret", 1, {1280, 704, 121}, "exact"});
    Recorder recorder(clock_, monitor_, {sink.get()});
    for (const char* const stage : {"Step_0_Inference", "Step_1_Inference", "Step_2_Inference"}) {
      recorder.Record({"planned_flops", 1e12, {{"stage", stage}}});
    }
    Span total = recorder.StartSpan(StageKind::kTotalExecution);
    RecordSpan(recorder, StageKind::kT5Encoding, absl::Milliseconds(3));
    for (int step = 0; step < 3; ++step) {
      auto facts = std::make_shared<StepFacts>();
      facts->step = step;
      facts->total = 3;
      facts->expert = step < 1 ? ExpertRole::kHighNoise : ExpertRole::kLowNoise;
      RecordSpan(recorder, {StageKind::kStepLoading, step}, absl::Milliseconds(1), facts);
      RecordSpan(recorder, {StageKind::kStepInference, step}, absl::Seconds(2), facts);
    }
    recorder.Record({"stop_seconds", 0.25, {}});
    recorder.Record({"component_memory_bytes", 7, {}});
    total.Finish().IgnoreError();
  }

  void RecordSpan(Recorder& recorder, Stage stage, absl::Duration duration,
                  std::shared_ptr<const StepFacts> facts = nullptr) {
    Span span = recorder.StartSpan(stage, std::move(facts));
    clock_.Advance(duration);
    span.Finish().IgnoreError();
  }

  // The greatest bound of the family's buckets but infinity.
  static double TopBound(const PrometheusText& text, const char* family) {
    double top = 0;
    for (const auto& sample : text.Find(family)->samples) {
      const auto bound = sample.labels.find("le");
      if (bound == sample.labels.end() || bound->second == "+Inf") continue;
      top = std::max(top, std::stod(bound->second));
    }
    return top;
  }

  static wan::v1::Job EndedJob(wan::v1::JobState state) {
    wan::v1::Job job;
    job.set_name("jobs/secret");
    job.set_state(state);
    job.mutable_request()->set_model("m");
    job.mutable_create_time()->set_seconds(100);
    job.mutable_start_time()->set_seconds(110);
    job.mutable_end_time()->set_seconds(112);
    return job;
  }

  static MetricsSnapshot Snapshot() {
    MetricsSnapshot snapshot;
    snapshot.jobs.queued = {{"m", 2}, {"gone", 1}};
    snapshot.jobs.queued_seconds = {{"m", 12.5}};
    snapshot.jobs.queued_total = 3;
    snapshot.jobs.unestimated = {{"m", 0}, {"gone", 1}};
    snapshot.jobs.groups.resize(1);
    snapshot.jobs.groups[0].device = "cuda:0";
    snapshot.jobs.groups[0].left_p50 = 40;
    snapshot.jobs.groups[0].left_p90 = 60;
    snapshot.jobs.job_watchers = 15;
    snapshot.storage.artifact_bytes = 7000;
    snapshot.storage.database_bytes = 8000;
    snapshot.jobs.running_total = 1;
    snapshot.jobs.queue_capacity = 100;
    snapshot.jobs.disk_free_bytes = 5000;
    snapshot.jobs.disk_reserved_bytes = 3000;
    snapshot.models.resize(2);
    snapshot.models[0].set_name("models/m");
    snapshot.models[0].set_state(wan::v1::MODEL_STATE_READY);
    snapshot.models[0].add_placements();
    for (const char* name : {"transformer", "vae"}) {
      auto* component = snapshot.models[0].mutable_placements(0)->add_components();
      component->set_name(name);
      component->set_device("cuda:0");
      component->set_bytes(1 << 20);
    }
    snapshot.models[1].set_name("models/idle");
    snapshot.models[1].set_state(wan::v1::MODEL_STATE_FAILED);
    DeviceSample cpu;
    cpu.device = "cpu";
    cpu.name = "a processor";
    cpu.cpu_percent = 12.5;
    cpu.process_cpu_percent = 5;
    cpu.memory_used_bytes = 5;
    cpu.memory_total_bytes = 6;
    cpu.process_memory_bytes = 7;
    cpu.process_memory_peak_bytes = 8;
    snapshot.devices = {cpu};
    snapshot.wire = {3,
                     4,
                     {{"address", 5}, {"total", 0}},
                     6,
                     7,
                     8,
                     9,
                     15,
                     16,
                     13,
                     14,
                     10,
                     11,
                     {{"downloads", 12}},
                     {{"resets", 15}}};
    snapshot.dropped_lines = {{"audit", 16}};
    return snapshot;
  }

  static DeviceSample Gpu() {
    DeviceSample gpu;
    gpu.device = "cuda:0";
    gpu.name = "NVIDIA \"H200\"";
    gpu.uuid = "GPU-0f3c";
    gpu.sm_activity_percent = 90;
    gpu.sm_occupancy_percent = 30;
    gpu.tensor_activity_percent = 50;
    gpu.dram_bandwidth_percent = 20;
    gpu.processes = 2;
    gpu.energy_joules = 1234;
    gpu.sm_active_seconds = 17;
    gpu.throttled_seconds = 4;
    gpu.throttled_seconds_by_reason = {{"power cap", 3}, {"temperature", 2}};
    gpu.memory_used_bytes = 10;
    gpu.memory_total_bytes = 20;
    gpu.allocator_bytes = 9;
    gpu.power_watts = 700;
    gpu.temperature_celsius = 60;
    gpu.sm_clock_mhz = 1980;
    gpu.memory_clock_mhz = 3201;
    return gpu;
  }

  fakes::FakeClock clock_;
  fakes::FakeDeviceMonitor monitor_;
  Metrics metrics_{{"1.2.3", "abc123", "cuda:0", "bf16", "LibTorch 2.11.0", "1.51"}, clock_};
};

TEST_F(MetricsTest, BuildInfoIsAlwaysThere) {
  EXPECT_EQ(Scrape().Value("wan_build_info", {{"version", "1.2.3"},
                                              {"revision", "abc123"},
                                              {"device", "cuda:0"},
                                              {"dtype", "bf16"},
                                              {"libraries", "LibTorch 2.11.0"},
                                              {"grpc", "1.51"}}),
            1);
}

TEST_F(MetricsTest, StagesAreObservedWithoutTheStepsNumber) {
  RecordJob();
  const PrometheusText text = Scrape();
  const auto count = [&](const char* stage) {
    return text.Value("wan_stage_seconds_count",
                      {{"stage", stage}, {"model", "m"}, {"quality", "exact"}});
  };
  EXPECT_EQ(count("T5_Encoding"), 1);
  EXPECT_EQ(count("Step_Loading"), 3);
  EXPECT_EQ(count("Step_Inference"), 3);
  EXPECT_EQ(count("Step_0_Inference"), std::nullopt);
  EXPECT_EQ(text.Value("wan_stage_seconds_sum",
                       {{"stage", "Step_Inference"}, {"model", "m"}, {"quality", "exact"}}),
            6);
  // From 1 ms to more than a day: a job may wait as long, and then Queue_Wait takes it.
  const auto bucket = [&](const char* bound) {
    return text.Value(
        "wan_stage_seconds_bucket",
        {{"stage", "T5_Encoding"}, {"model", "m"}, {"quality", "exact"}, {"le", bound}});
  };
  EXPECT_EQ(bucket("0.001"), 0);
  EXPECT_EQ(bucket("0.00225"), 0);
  EXPECT_EQ(bucket("0.00338"), 1);
  EXPECT_GT(TopBound(text, "wan_stage_seconds"), 86'400);
  EXPECT_GT(TopBound(text, "wan_stage_seconds"), TopBound(text, "wan_step_seconds"));
}

// A histogram tells quantiles as exactly as its buckets are narrow.
TEST_F(MetricsTest, AStepsQuantileIsWithinAFifthOfTheTruth) {
  const auto sink = metrics_.StageSinks()({"m", "jobs/1", 1, {1280, 704, 121}, "exact"});
  Recorder recorder(clock_, monitor_, {sink.get()});
  auto facts = std::make_shared<StepFacts>();
  const int steps = 100;
  for (int step = 0; step < steps; ++step) {
    RecordSpan(recorder, {StageKind::kStepInference, step}, absl::Milliseconds(12'800), facts);
  }
  const PrometheusText text = Scrape();
  // As histogram_quantile computes it.
  double below = 0;
  double above = 0;
  for (const auto& sample : text.Find("wan_step_seconds")->samples) {
    if (sample.name != "wan_step_seconds_bucket" || sample.labels.at("le") == "+Inf") continue;
    const double bound = std::stod(sample.labels.at("le"));
    if (sample.value == 0) below = bound;
    if (sample.value > 0 && above == 0) above = bound;
  }
  EXPECT_NEAR(below + 0.95 * (above - below), 12.8, 12.8 / 5);
}

TEST_F(MetricsTest, StepsAreObservedByExpertAndWithoutTheirLoading) {
  RecordJob();
  const PrometheusText text = Scrape();
  const auto of = [](const char* expert) {
    return support::PrometheusLabels{
        {"model", "m"}, {"quality", "exact"}, {"expert", expert}, {"shape", "1280x704x121"}};
  };
  EXPECT_EQ(text.Value("wan_step_seconds_count", of("high")), 1);
  EXPECT_EQ(text.Value("wan_step_seconds_count", of("low")), 2);
  EXPECT_EQ(text.Value("wan_step_seconds_sum", of("low")), 4);
  EXPECT_EQ(text.Value("wan_step_flops_total", of("low")), 2e12);
  EXPECT_EQ(text.Value("wan_stage_flops_total",
                       {{"model", "m"}, {"quality", "exact"}, {"stage", "Step_Inference"}}),
            3e12);
  EXPECT_EQ(text.Value("wan_stop_seconds_count", {{"model", "m"}}), 1);
  EXPECT_EQ(text.Value("wan_stop_seconds_sum", {{"model", "m"}}), 0.25);
}

TEST_F(MetricsTest, StagesThatFailedAreNotObserved) {
  const auto sink = metrics_.StageSinks()({"m", "", 0});
  Recorder recorder(clock_, monitor_, {sink.get()});
  recorder.StartSpan(StageKind::kVaeDecoding).Finish(absl::InternalError("no")).IgnoreError();
  EXPECT_EQ(Scrape().Find("wan_stage_seconds"), nullptr);
}

TEST_F(MetricsTest, JobsAreCountedWhenTheyEnd) {
  wan::v1::Model model;
  model.set_name("models/m");
  model.set_state(wan::v1::MODEL_STATE_FAILED);
  metrics_.OnModelState(model);
  // Labels stay for ever, and anybody can ask for models that cannot be loaded.
  EXPECT_EQ(Scrape().Find("wan_jobs_total"), nullptr);
  model.set_state(wan::v1::MODEL_STATE_READY);
  metrics_.OnModelState(model);
  const auto ended = [](const char* state) {
    return support::PrometheusLabels{{"model", "m"}, {"quality", "exact"}, {"state", state}};
  };
  // There from the start.
  EXPECT_EQ(Scrape().Value("wan_jobs_total", ended("failed")), 0);

  metrics_.OnJobState(EndedJob(wan::v1::JOB_STATE_QUEUED), wan::v1::JOB_STATE_UNSPECIFIED);
  metrics_.OnJobState(EndedJob(wan::v1::JOB_STATE_RUNNING), wan::v1::JOB_STATE_QUEUED);
  EXPECT_EQ(Scrape().Value("wan_job_seconds_count", ended("completed")), 0);
  EXPECT_EQ(Scrape().Value("wan_stop_seconds_count", {{"model", "m"}}), 0);
  // Nor has any job failed or been cancelled yet.
  EXPECT_EQ(Scrape().Value("wan_job_cancels_total", {{"model", "m"}, {"reason", "deadline"}}), 0);
  for (const char* const reason : {"OUT_OF_MEMORY", "NOT_FINITE"}) {
    EXPECT_EQ(Scrape().Value("wan_job_failures_total", {{"model", "m"}, {"reason", reason}}), 0);
  }

  metrics_.OnJobState(EndedJob(wan::v1::JOB_STATE_COMPLETED), wan::v1::JOB_STATE_RUNNING);
  metrics_.OnJobState(EndedJob(wan::v1::JOB_STATE_COMPLETED), wan::v1::JOB_STATE_RUNNING);
  metrics_.OnJobState(EndedJob(wan::v1::JOB_STATE_CANCELLED), wan::v1::JOB_STATE_QUEUED);
  metrics_.OnSavepoint(EndedJob(wan::v1::JOB_STATE_RUNNING), /*steps_done=*/3, 0.25);
  const PrometheusText text = Scrape();
  EXPECT_EQ(text.Value("wan_jobs_total", ended("completed")), 2);
  EXPECT_EQ(text.Value("wan_jobs_total", ended("failed")), 0);
  EXPECT_EQ(text.Value("wan_jobs_total", ended("cancelled")), 1);
  EXPECT_EQ(text.Value("wan_job_seconds_sum", ended("completed")), 24);
  EXPECT_EQ(text.Value("wan_job_seconds_count", ended("cancelled")), 1);
  EXPECT_EQ(text.Value("wan_savepoint_seconds_sum", {{"model", "m"}}), 0.25);
}

TEST_F(MetricsTest, ALostDeviceIsThereFromTheStartAndSaysHowItWasFound) {
  for (const DeviceLoss cause : {DeviceLoss::kError, DeviceLoss::kCanary}) {
    const std::string label = cause == DeviceLoss::kError ? "error" : "canary";
    EXPECT_EQ(Scrape().Value("wan_device_lost", {{"cause", label}}), 0);
    metrics_.OnDeviceLost(cause, absl::UnavailableError("lost"));
    EXPECT_EQ(Scrape().Value("wan_device_lost", {{"cause", label}}), 1);
  }
}

TEST_F(MetricsTest, EveryCodeOfAMethodIsThereBeforeItsFirstCall) {
  metrics_.AddMethod("/wan.v1.VideoGeneration/GetJob");
  metrics_.AddMethod("GET /v1/videos");
  const support::PrometheusLabels lost = {{"code", "DATA_LOSS"},
                                          {"method", "wan.v1.VideoGeneration/GetJob"}};
  const support::PrometheusLabels unknown = {{"code", "404"}, {"route", "other"}};
  PrometheusText text = Scrape();
  EXPECT_EQ(text.Find("wan_grpc_calls_total")->samples.size(), 17u);
  EXPECT_EQ(text.Value("wan_grpc_calls_total", lost), 0);
  EXPECT_EQ(text.Value("wan_http_requests_total", unknown), 0);
  metrics_.OnCall("/wan.v1.VideoGeneration/GetJob", absl::DataLossError(""), absl::Seconds(1));
  metrics_.OnHttpAnswer("", 404, absl::Seconds(1));
  text = Scrape();
  EXPECT_EQ(text.Value("wan_grpc_calls_total", lost), 1);
  EXPECT_EQ(text.Value("wan_grpc_call_seconds_sum", lost), 1);
  EXPECT_EQ(text.Value("wan_http_requests_total", unknown), 1);
}

TEST_F(MetricsTest, GaugesAreOfTheMomentOfTheScrape) {
  MetricsSnapshot snapshot = Snapshot();
  metrics_.SetSource([&] { return snapshot; });
  const PrometheusText text = Scrape();
  EXPECT_EQ(text.Value("wan_active_jobs", {{"state", "queued"}}), 3);
  EXPECT_EQ(text.Value("wan_active_jobs", {{"state", "running"}}), 1);
  EXPECT_EQ(text.Value("wan_queue_capacity"), 100);
  EXPECT_EQ(text.Value("wan_storage_writable"), 1);
  snapshot.jobs.storage_writable = false;
  EXPECT_EQ(Scrape().Value("wan_storage_writable"), 0);
  EXPECT_EQ(text.Value("wan_draining"), 0);
  snapshot.jobs.draining = true;
  EXPECT_EQ(Scrape().Value("wan_draining"), 1);
  EXPECT_EQ(text.Value("wan_queue_length", {{"model", "m"}}), 2);
  EXPECT_EQ(text.Value("wan_queue_length", {{"model", "idle"}}), 0);
  EXPECT_EQ(text.Value("wan_queue_length", {{"model", "gone"}}), 1);
  EXPECT_EQ(text.Value("wan_queued_seconds", {{"model", "m"}}), 12.5);
  EXPECT_EQ(text.Value("wan_queued_seconds", {{"model", "idle"}}), 0);
  EXPECT_EQ(text.Value("wan_queued_seconds", {{"model", "gone"}}), std::nullopt);
  EXPECT_EQ(text.Value("wan_queue_unestimated", {{"model", "m"}}), 0);
  EXPECT_EQ(text.Value("wan_queue_unestimated", {{"model", "gone"}}), 1);
  EXPECT_EQ(text.Value("wan_job_watchers"), 15);
  EXPECT_EQ(text.Value("wan_artifact_bytes"), 7000);
  EXPECT_EQ(text.Value("wan_database_bytes"), 8000);
  EXPECT_EQ(text.Value("wan_model_ready", {{"model", "m"}}), 1);
  EXPECT_EQ(text.Value("wan_model_ready", {{"model", "idle"}}), 0);
  EXPECT_EQ(text.Value("wan_component_memory_bytes",
                       {{"model", "m"}, {"component", "vae"}, {"device", "cuda:0"}}),
            1 << 20);
  EXPECT_EQ(text.Value("wan_cpu_percent"), 12.5);
  EXPECT_EQ(text.Value("wan_process_cpu_percent"), 5);
  EXPECT_EQ(text.Value("wan_system_memory_used_bytes"), 5);
  EXPECT_EQ(text.Value("wan_system_memory_total_bytes"), 6);
  EXPECT_EQ(text.Value("wan_process_memory_bytes"), 7);
  EXPECT_EQ(text.Value("wan_process_memory_peak_bytes"), 8);
  EXPECT_EQ(text.Value("wan_grpc_connections"), 3);
  EXPECT_EQ(text.Value("wan_grpc_connections_limit"), 4);
  EXPECT_EQ(text.Value("wan_grpc_refused_connections_total", {{"reason", "address"}}), 5);
  EXPECT_EQ(text.Value("wan_grpc_refused_connections_total", {{"reason", "total"}}), 0);
  EXPECT_EQ(text.Value("wan_grpc_request_bytes"), 8);
  EXPECT_EQ(text.Value("wan_grpc_request_bytes_limit"), 9);
  EXPECT_EQ(text.Value("wan_grpc_answer_bytes"), 15);
  EXPECT_EQ(text.Value("wan_grpc_answer_bytes_limit"), 16);
  EXPECT_EQ(text.Value("wan_grpc_streams"), 13);
  EXPECT_EQ(text.Value("wan_grpc_streams_limit"), 14);
  EXPECT_EQ(text.Value("wan_grpc_downloads"), 10);
  EXPECT_EQ(text.Value("wan_grpc_downloads_limit"), 11);
  EXPECT_EQ(text.Value("wan_grpc_refused_calls_total", {{"reason", "downloads"}}), 12);
  EXPECT_EQ(text.Value("wan_log_dropped_lines_total", {{"log", "audit"}}), 16);
  EXPECT_EQ(text.Value("wan_grpc_misused_connections_total", {{"reason", "resets"}}), 15);
  EXPECT_EQ(text.Value("wan_process_descriptors"), 6);
  EXPECT_EQ(text.Value("wan_process_descriptors_limit"), 7);

  snapshot.jobs.running_total = 0;
  EXPECT_EQ(Scrape().Value("wan_active_jobs", {{"state", "running"}}), 0);
  metrics_.SetSource(nullptr);
  EXPECT_EQ(Scrape().Find("wan_active_jobs"), nullptr);
}

TEST_F(MetricsTest, WhatIsNotMeasuredIsAbsent) {
  MetricsSnapshot snapshot = Snapshot();
  snapshot.devices[0].cpu_percent.reset();
  snapshot.wire.descriptors = 0;
  metrics_.SetSource([&] { return snapshot; });
  const PrometheusText text = Scrape();
  EXPECT_EQ(text.Find("wan_cpu_percent"), nullptr);
  EXPECT_EQ(text.Find("wan_process_descriptors"), nullptr);
  for (const auto& [name, family] : text.families()) {
    EXPECT_EQ(name.find("wan_gpu_"), std::string::npos) << name << " without a GPU";
  }
}

TEST_F(MetricsTest, GpuFiguresAreInBaseUnits) {
  MetricsSnapshot snapshot = Snapshot();
  snapshot.devices.push_back(Gpu());
  snapshot.gpu_sums = {{"cuda:0", {.tensor_seconds = 9}}, {"cpu", {}}};
  metrics_.SetSource([&] { return snapshot; });
  const PrometheusText text = Scrape();
  const support::PrometheusLabels gpu = {
      {"device", "cuda:0"}, {"name", "NVIDIA \"H200\""}, {"UUID", "GPU-0f3c"}};
  EXPECT_EQ(text.Value("wan_gpu_sm_activity_percent", gpu), 90);
  EXPECT_EQ(text.Value("wan_gpu_memory_used_bytes", gpu), 10);
  EXPECT_EQ(text.Value("wan_gpu_memory_total_bytes", gpu), 20);
  EXPECT_EQ(text.Value("wan_gpu_allocator_bytes", gpu), 9);
  EXPECT_EQ(text.Value("wan_gpu_power_watts", gpu), 700);
  EXPECT_EQ(text.Value("wan_gpu_temperature_celsius", gpu), 60);
  EXPECT_EQ(text.Value("wan_gpu_sm_clock_hertz", gpu), 1.98e9);
  EXPECT_EQ(text.Value("wan_gpu_memory_clock_hertz", gpu), 3.201e9);
  EXPECT_EQ(text.Value("wan_gpu_busy_seconds_total", gpu), 17);
  EXPECT_EQ(text.Value("wan_gpu_tensor_seconds_total", gpu), 9);
  EXPECT_EQ(text.Find("wan_gpu_dram_seconds_total"), nullptr);
  EXPECT_EQ(text.Value("wan_gpu_energy_joules_total", gpu), 1234);
  EXPECT_EQ(text.Value("wan_gpu_processes", gpu), 2);
  support::PrometheusLabels hot = gpu;
  hot["reason"] = "temperature";
  EXPECT_EQ(text.Value("wan_gpu_throttled_seconds_total", hot), 2);
  // The machine's own figures are still the CPU's.
  EXPECT_EQ(text.Value("wan_system_memory_used_bytes"), 5);
}

// Everything at once, for the checks below.
class WholeMetricsTest : public MetricsTest {
 protected:
  void SetUp() override {
    RecordJob();
    metrics_.OnJobState(EndedJob(wan::v1::JOB_STATE_COMPLETED), wan::v1::JOB_STATE_RUNNING);
    metrics_.OnSavepoint(EndedJob(wan::v1::JOB_STATE_COMPLETED), /*steps_done=*/3, 0.25);
    metrics_.OnJobState(EndedJob(wan::v1::JOB_STATE_FAILED), wan::v1::JOB_STATE_RUNNING);
    metrics_.OnJobCancelled(EndedJob(wan::v1::JOB_STATE_CANCELLED), StopCause::kDeadline);
    metrics_.OnJobRequeued(EndedJob(wan::v1::JOB_STATE_QUEUED), RequeueCause::kPreempted);
    metrics_.OnEstimateMet(EndedJob(wan::v1::JOB_STATE_COMPLETED),
                           {absl::Seconds(9), absl::Seconds(10), absl::Seconds(15)});
    metrics_.OnJobsRejected(absl::ResourceExhaustedError("full"), 2);
    metrics_.OnStoreWrite("apply", absl::Milliseconds(4));
    metrics_.OnCall("/wan.v1.VideoGeneration/GetJob", absl::OkStatus(), absl::Milliseconds(1));
    metrics_.OnHttpAnswer("GET /v1/videos", 200, absl::Milliseconds(1));
    metrics_.AddObjects();
    metrics_.OnObjectRequest({ObjectOperation::kPut, ObjectOutcome::kOk, 0.02, 1000, 0});
    running_sink_ = metrics_.StageSinks()({"m", "jobs/secret2", 1, {1280, 704, 121}, "exact"});
    running_.emplace(clock_, monitor_, std::vector<TelemetrySink*>{running_sink_.get()});
    total_.emplace(running_->StartSpan(StageKind::kTotalExecution));
    snapshot_.devices.push_back(Gpu());
    snapshot_.gpu_sums = {{"cuda:0", {.tensor_seconds = 9, .dram_seconds = 4}}};
    metrics_.SetSource([this] { return snapshot_; });
  }

  MetricsSnapshot snapshot_ = Snapshot();
  // A job that runs.
  std::unique_ptr<TelemetrySink> running_sink_;
  std::optional<Recorder> running_;
  std::optional<Span> total_;
};

TEST_F(WholeMetricsTest, NamesHaveOurPrefixAndNoLabelHoldsAJob) {
  const PrometheusText text = Scrape();
  EXPECT_GT(text.families().size(), 20u);
  for (const auto& [name, family] : text.families()) {
    // Those of every Prometheus client keep their own.
    EXPECT_TRUE(name.starts_with("wan_") || name.starts_with("process_")) << name;
    for (const auto& sample : family.samples) {
      for (const auto& [label, value] : sample.labels) {
        EXPECT_EQ(value.find("secret"), std::string::npos) << name << " " << label;
      }
    }
  }
}

// What is served is what the catalog says: names, types, HELP and labels.
TEST_F(WholeMetricsTest, WhatIsServedIsTheCatalog) {
  const PrometheusText text = Scrape();
  std::set<std::string> cataloged;
  for (const MetricSection& section : MetricSections()) {
    for (const MetricRow& row : section.rows) {
      cataloged.insert(std::string(row.name));
      const auto* const family = text.Find(row.name);
      ASSERT_NE(family, nullptr) << row.name << " is not served";
      EXPECT_EQ(family->type, NameOf(row.type)) << row.name;
      EXPECT_EQ(family->help, row.help) << row.name;
      for (const auto& sample : family->samples) {
        std::string labels;
        for (const auto& [label, value] : sample.labels) {
          if (label == "le") continue;
          absl::StrAppend(&labels, labels.empty() ? "" : ", ", label);
        }
        EXPECT_EQ(labels, row.labels) << sample.name;
      }
    }
  }
  for (const auto& [name, family] : text.families()) EXPECT_TRUE(cataloged.contains(name)) << name;
}

// The part of docs/operate/metrics.md behind its mark is printed from the catalog. With
// WAN_WRITE_METRICS_PAGE=1 this writes the page.
TEST(MetricsPageTest, IsThatOfTheCatalog) {
  const std::string mark = "<!-- From here on printed from server/metrics/catalog.cc";
  std::ifstream file(WAN_METRICS_PAGE);
  const std::string page{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const size_t marked = page.find(mark);
  ASSERT_NE(marked, std::string::npos) << WAN_METRICS_PAGE;
  const size_t tables = page.find("\n\n", marked) + 2;
  if (std::getenv("WAN_WRITE_METRICS_PAGE") != nullptr) {
    std::ofstream(WAN_METRICS_PAGE) << page.substr(0, tables) << MetricTables();
  } else {
    EXPECT_EQ(page.substr(tables), MetricTables())
        << "run metrics_test with WAN_WRITE_METRICS_PAGE=1 and commit the page";
  }
}

TEST_F(WholeMetricsTest, PrometheusOwnLinterFindsNothing) {
  const std::string promtool = WAN_PROMTOOL;
  if (promtool.find("NOTFOUND") != std::string::npos) {
    GTEST_SKIP() << "promtool (package prometheus) is not installed";
  }
  FILE* const pipe = ::popen((promtool + " check metrics").c_str(), "w");
  ASSERT_NE(pipe, nullptr);
  const std::string text = Text();
  EXPECT_EQ(std::fwrite(text.data(), 1, text.size(), pipe), text.size());
  EXPECT_EQ(::pclose(pipe), 0) << text;
}

// The parser of Prometheus' own Python client is stricter than Prometheus.
TEST_F(WholeMetricsTest, AStrictParserReadsTheOpenMetrics) {
  const std::string python = WAN_PYTHON;
  const std::string parser = "from prometheus_client.openmetrics import parser";
  if (std::system((python + " -c '" + parser + "' 2>/dev/null").c_str()) != 0) {
    GTEST_SKIP() << "prometheus_client (package python3-prometheus-client) is not installed";
  }
  // Prints every sample that has an exemplar.
  const std::string program =
      parser +
      "\nimport sys\n"
      "for family in parser.text_string_to_metric_families(sys.stdin.read()):\n"
      "  for sample in family.samples:\n"
      "    if sample.exemplar: print(sample.name, sample.exemplar.labels, sample.exemplar.value)\n";
  const std::string printed = ::testing::TempDir() + "exemplars_of_metrics_test";
  FILE* const pipe = ::popen((python + " -c '" + program + "' >'" + printed + "'").c_str(), "w");
  ASSERT_NE(pipe, nullptr);
  const std::string text = Text(MetricFormat::kOpenMetrics);
  EXPECT_EQ(std::fwrite(text.data(), 1, text.size(), pipe), text.size());
  EXPECT_EQ(::pclose(pipe), 0) << text;
  std::ifstream file(printed);
  const std::string exemplars{std::istreambuf_iterator<char>(file),
                              std::istreambuf_iterator<char>()};
  EXPECT_THAT(exemplars,
              ::testing::HasSubstr("wan_job_seconds_bucket {'job': 'jobs/secret'} 12\n"));
  EXPECT_EQ(std::remove(printed.c_str()), 0);
}

}  // namespace
}  // namespace wan::server
