// Runs jobs on the real engine, compares the peak memory of every stage with the plan's estimate,
// and prints one line per stage and shape. The exit status is 1 if a peak is above its estimate or
// more than 5 % below it, if the process took more of the device than allowed, or if a row could
// not be measured.
//
//   wan_bench memory --model synthetic:ti2v-5b --shape 1280x704x121 --shape 832x480x81
//   wan_bench memory --model synthetic:t2v-a14b --shape 832x480x81 --limit 48 --residency vae=host
//
// With --results FILE, the command stores each row as soon as it is measured, and skips rows that
// FILE already has. So a run that was stopped can be continued. The option --budget limits a run's
// seconds: a row that would not end in time is not begun.
#include <ATen/DeviceAccelerator.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "benchmarks/bench_flags.h"
#include "benchmarks/commands.h"
#include "benchmarks/engine_job.h"
#include "benchmarks/memory_rows.h"
#include "engine/api/engine_factory.h"

namespace wan {
namespace {

// The device memory in use now, and the allocator's part of it.
struct DeviceState {
  uint64_t process = 0;
  uint64_t reserved = 0;
  int64_t retries = 0;
};

DeviceState ReadDevice(const std::string& name) {
  const at::Device device(name);
  if (device.is_cpu()) return {};
  const auto [free, total] = at::accelerator::getMemoryInfo(device.index());
  const auto stats = at::accelerator::getDeviceStats(device.index());
  return {total - free, static_cast<uint64_t>(stats.reserved_bytes[0].current),
          stats.num_alloc_retries};
}

// Collects a row while its job runs: the largest peak of each stage. All steps count as one stage.
class RowSink final : public TelemetrySink {
 public:
  explicit RowSink(std::string device) : device_(std::move(device)) {}

  void OnSpanEnd(const SpanRecord& record) override {
    if (record.step != nullptr) {
      const bool is_loading = record.stage.kind == StageKind::kStepLoading;
      (is_loading ? row.loading_seconds : row.step_seconds).push_back(record.seconds);
    }
    const DeviceState state = ReadDevice(device_);
    row.process = std::max(row.process, state.process);
    row.reserved = std::max(row.reserved, state.reserved);
    seconds_[record.stage] += record.seconds;
    if (record.stage.kind == StageKind::kVaeDecoding) ++row.decodings;
    if (!record.usage.gpu_memory_peak_bytes.has_value()) return;
    uint64_t& peak = peaks_[record.stage];
    peak = std::max(peak, *record.usage.gpu_memory_peak_bytes);
  }

  // Adds the planned figures to the measured row.
  void AddStages() {
    for (const StagePlan& stage : row.plan.stages) {
      const uint64_t estimate = stage.weight_bytes + stage.activation_bytes;
      const auto peak = peaks_.find(stage.stage);
      if (peak == peaks_.end() || estimate == 0) continue;
      row.stages.push_back(
          {stage.stage, stage.weight_bytes, estimate, peak->second, seconds_.at(stage.stage)});
    }
  }

  MemoryRow row;

 private:
  const std::string device_;
  std::map<Stage, uint64_t> peaks_;
  std::map<Stage, double> seconds_;
};

struct MemorySettings {
  std::string model = "synthetic:ti2v-5b";
  std::string device = "cuda:0";
  std::vector<std::string> shapes = {"1280x704x121"};
  std::vector<std::string> residency;
  double limit_gib = 0;
  int steps = 2;
  std::string results;
  double budget = 0;
};

// Returns a plan for the same job under the same policies, but with few steps.
absl::StatusOr<GenerationPlan> WithFewSteps(const Engine& engine, const GenerationPlan& plan,
                                            int steps) {
  GenerationRequest request = plan.request;
  request.steps = steps;
  request.shift = 1;  // with a shift of 1 each expert computes a step
  absl::StatusOr<GenerationPlan> few = engine.Plan(request);
  if (!few.ok()) return few.status();
  std::map<StageKind, std::vector<StagePlan>> stages;
  for (const StagePlan& stage : plan.stages) stages[stage.stage.kind].push_back(stage);
  size_t step = 0;
  for (StagePlan& stage : few->stages) {
    const StageKind kind = stage.stage.kind;
    size_t like = 0;
    if (kind == StageKind::kStepInference) {
      const ExpertRole expert = few->steps[step++].expert;
      while (plan.steps[like].expert != expert) ++like;
    }
    stage.weight_bytes = stages.at(kind)[like].weight_bytes;
    stage.activation_bytes = stages.at(kind)[like].activation_bytes;
  }
  few->residency = plan.residency;
  few->batched_guidance = plan.batched_guidance;
  few->prefetch_experts = plan.prefetch_experts;
  few->decode_tiles = plan.decode_tiles;
  few->peak_device_bytes = plan.peak_device_bytes;
  return few;
}

// Returns more seconds than the row will take, so that a row that is begun also ends in time.
double ExpectedSeconds(const GenerationPlan& plan) {
  constexpr double kFlopsPerSecond = 4.5e14;
  constexpr double kBesides = 8;
  double flops = 0;
  for (const StagePlan& stage : plan.stages) flops += stage.flops.value_or(0);
  return kBesides + flops / kFlopsPerSecond;
}

MemoryRow Measure(Engine& engine, const GenerationPlan& plan, const std::string& device) {
  RowSink sink(device);
  sink.row.plan = plan;
  const int64_t retries = ReadDevice(device).retries;
  Recorder recorder(SystemClock(), engine.Monitor(), {&sink});
  GenerationObserver observer;
  const absl::Status status = engine.Generate(plan, {}, recorder, observer, {});
  if (!status.ok()) sink.row.failure = status.ToString();
  sink.row.retries = ReadDevice(device).retries - retries;
  sink.AddStages();
  return std::move(sink.row);
}

// Returns whether the only problem of the row is that a stage took less than planned.
bool StayedBelow(const MemoryRow& row) {
  const auto never_above = [](const StageRow& stage) { return stage.peak <= stage.estimate; };
  return !row.IsRight() && row.failure.empty() && std::ranges::all_of(row.stages, never_above);
}

absl::StatusOr<bool> Run(const MemorySettings& settings, Session& session) {
  const auto begin = std::chrono::steady_clock::now();
  const std::set<RowKey> known = ReadRowKeys(settings.results);
  std::vector<RowKey> keys;
  for (const std::string& shape : settings.shapes) {
    RowKey key{settings.model, settings.limit_gib, shape, absl::StrJoin(settings.residency, ",")};
    if (!known.contains(key)) keys.push_back(std::move(key));
  }
  if (keys.empty()) return true;

  EngineOptions options;
  absl::StatusOr<std::vector<ComponentResidency>> residency = ParseResidency(settings.residency);
  if (!residency.ok()) return residency.status();
  options.residency = *std::move(residency);
  options.device_memory_limit = static_cast<uint64_t>(settings.limit_gib * kGiB);
  absl::StatusOr<std::unique_ptr<Engine>> engine = MakeWanEngine({settings.device}, options);
  if (!engine.ok()) return engine.status();
  Recorder unheard(SystemClock(), (*engine)->Monitor(), {});
  if (absl::Status status = (*engine)->LoadModel({"m", settings.model}, unheard); !status.ok()) {
    return status;
  }
  session.Note(absl::StrFormat("%s loaded in %.1f s", settings.model, SecondsSince(begin)));

  bool good = true;
  for (const RowKey& key : keys) {
    // Plan with the model's default number of steps, because `auto` chooses policies for that
    // number.
    const absl::StatusOr<GenerationRequest> request = BenchmarkRequest(**engine, key.shape);
    if (!request.ok()) return request.status();
    const absl::StatusOr<GenerationPlan> plan = (*engine)->Plan(*request);
    MemoryRow row;
    if (absl::IsInvalidArgument(plan.status())) {
      row.refusal = std::string(plan.status().message());
    } else if (!plan.ok()) {
      return plan.status();
    } else {
      const absl::StatusOr<GenerationPlan> few = WithFewSteps(**engine, *plan, settings.steps);
      if (!few.ok()) return few.status();
      if (settings.budget > 0 && SecondsSince(begin) + ExpectedSeconds(*few) > settings.budget) {
        session.Note(absl::StrFormat("%s: left for another run, it would take %.0f s", key.shape,
                                     ExpectedSeconds(*few)));
        continue;
      }
      row = Measure(**engine, *few, settings.device);
      // In the first job of a plan, weights may not yet be where the plan wants them.
      if (StayedBelow(row)) row = Measure(**engine, *few, settings.device);
    }
    row.key = key;
    good = row.IsRight() && good;
    if (absl::Status status = AddRows(row, session); !status.ok()) return status;
    if (settings.results.empty()) continue;
    if (absl::Status status = AppendRow(settings.results, row); !status.ok()) return status;
  }
  return good;
}

}  // namespace

BenchCommand AddMemory(CLI::App& app) {
  const auto settings = std::make_shared<MemorySettings>();
  AddModelFlag(app, settings->model);
  AddDeviceFlag(app, settings->device);
  app.add_option("--shape", settings->shapes, "WIDTHxHEIGHTxFRAMES; may be repeated")
      ->capture_default_str();
  app.add_option("--residency", settings->residency, "COMPONENT=POLICY; may be repeated");
  app.add_option("--limit", settings->limit_gib, "GiB of the device to use; 0: all")
      ->capture_default_str();
  app.add_option("--results", settings->results, "file of measured rows, which the run continues");
  app.add_option("--budget", settings->budget, "seconds that the run may take; 0: no limit")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--steps", settings->steps)->check(CLI::PositiveNumber)->capture_default_str();
  return [settings](Session& session) { return Run(*settings, session); };
}

}  // namespace wan
