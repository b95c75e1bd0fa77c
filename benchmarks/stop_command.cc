// Measures how long a stop takes in every stage: from the stop request until the work has returned
// and the device is idle. In each case a job is stopped a given time after a stage began. The exit
// status is 1 if a stop takes longer than --at-most.
//
//   wan_bench stop --model synthetic:ti2v-5b --shape 1280x704x121 --stop VAE_Decoding@0.5
//   wan_bench stop --model synthetic:t2v-a14b --shape 1280x720x81 --stop Step_0_Inference@3
//   wan_bench stop --model synthetic:t2v-a14b --stop Model_Initialization@1
//
// If a stage ends before its stop is due, the table names the stage in which the stop was
// requested. The time of Job@ counts from the job's start. With --park the job then moves weights
// to host memory.
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "benchmarks/bench_flags.h"
#include "benchmarks/commands.h"
#include "benchmarks/engine_job.h"
#include "engine/api/engine_factory.h"

namespace wan {
namespace {

struct StopSettings {
  std::string model = "synthetic:ti2v-5b";
  std::string device = "cuda:0";
  std::string shape = "1280x704x121";
  std::vector<std::string> stops;
  std::vector<std::string> residency;
  std::vector<std::string> loras;
  int steps = 1;
  double guidance = 5;
  bool image = false;
  bool tiles = false;
  bool park = false;
  double at_most = 0.5;
};

// The name for the time before the first stage.
constexpr char kWholeJob[] = "Job";

// A point in a job: "STAGE@SECONDS", or "Job@SECONDS" for the time before the first stage.
struct StopPoint {
  std::optional<Stage> stage;  // nullopt: the time counts from the start of the job
  double seconds = 0;

  std::string Name() const { return stage.has_value() ? NameOf(*stage) : kWholeJob; }
};

absl::StatusOr<StopPoint> ParseStop(const std::string& text) {
  const size_t at = text.find('@');
  const std::string name = text.substr(0, at);
  const std::optional<Stage> stage = ParseStage(name);
  if (at == std::string::npos || (!stage.has_value() && name != kWholeJob)) {
    return absl::InvalidArgumentError(absl::StrCat("'", text, "' is not STAGE@SECONDS"));
  }
  return StopPoint{stage, std::strtod(text.c_str() + at + 1, nullptr)};
}

// Keeps a list of the open stages, and wakes the waiting thread when a stage begins.
class StageWatch final : public TelemetrySink {
 public:
  void OnSpanStart(const SpanStart& start) override {
    const std::scoped_lock lock(mutex_);
    open_.push_back(start.stage);
    seen_.push_back(start.stage);
    changed_.notify_all();
  }
  void OnSpanEnd(const SpanRecord& record) override {
    const std::scoped_lock lock(mutex_);
    const auto found = std::find(open_.begin(), open_.end(), record.stage);
    if (found != open_.end()) open_.erase(found);
  }
  void OnSample(const Sample& sample) override {
    const std::scoped_lock lock(mutex_);
    if (sample.name == "stop_seconds") told_ = sample.value;
  }
  void End() {
    const std::scoped_lock lock(mutex_);
    ended_ = true;
    changed_.notify_all();
  }

  // Waits until the stage begins. Returns false if the work ended before that stage began.
  bool AwaitStart(const Stage& stage) {
    std::unique_lock lock(mutex_);
    const auto is_there = [&] {
      return std::find(seen_.begin(), seen_.end(), stage) != seen_.end();
    };
    changed_.wait(lock, [&] { return ended_ || is_there(); });
    return is_there();
  }
  // Returns the name of the stage that began last and is still open.
  std::string Now() {
    const std::scoped_lock lock(mutex_);
    return open_.empty() ? "between stages" : NameOf(open_.back());
  }
  // Returns the seconds that the engine itself reported for the stop; -1 if it reported none.
  double told() {
    const std::scoped_lock lock(mutex_);
    return told_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Stage> open_;
  std::vector<Stage> seen_;
  bool ended_ = false;
  double told_ = -1;
};

// Runs `work` on a thread, and stops it at `point`. Returns whether the stop was quick enough.
absl::StatusOr<bool> Measure(
    const StopSettings& settings, Session& session, Engine& engine, const StopPoint& point,
    const std::function<absl::Status(Recorder&, const std::stop_token&)>& work) {
  using SteadyClock = std::chrono::steady_clock;
  StageWatch watch;
  Recorder recorder(SystemClock(), engine.Monitor(), {&watch});
  std::stop_source stop;
  absl::Status status;
  SteadyClock::time_point returned;
  std::thread worker([&] {
    status = work(recorder, stop.get_token());
    Synchronize(at::Device(settings.device));
    returned = SteadyClock::now();
    watch.End();
  });
  const bool began = !point.stage.has_value() || watch.AwaitStart(*point.stage);
  if (began) std::this_thread::sleep_for(std::chrono::duration<double>(point.seconds));
  const std::string stage = watch.Now();
  const auto requested = SteadyClock::now();
  stop.request_stop();
  worker.join();
  const double seconds = std::chrono::duration<double>(returned - requested).count();
  BenchRow row{.name = absl::StrCat(settings.model, " ", settings.shape, " ", point.Name(), "@",
                                    point.seconds)};
  row.figures = {{"stage", began ? stage : "never began"}};
  bool good = false;
  if (!began || seconds < 0 || !absl::IsCancelled(status)) {
    row.figures.push_back({"not_stopped", status.ToString().substr(0, 80)});
    // If the job ended before it was stopped, there is no figure.
    good = began && status.ok();
  } else {
    good = seconds <= settings.at_most;
    row.timing = Timing{seconds, seconds, seconds, 1};
    row.figures.push_back({"engine_seconds", watch.told()});
  }
  row.figures.push_back({"right", good});
  if (absl::Status added = session.Add(std::move(row)); !added.ok()) return added;
  return good;
}

absl::StatusOr<GenerationRequest> MakeRequest(const StopSettings& settings, const Engine& engine) {
  absl::StatusOr<GenerationRequest> made = BenchmarkRequest(engine, settings.shape, settings.image);
  if (!made.ok()) return made.status();
  GenerationRequest& request = *made;
  request.steps = settings.steps;
  if (settings.steps > 1) request.shift = 1;  // with a shift of 1 each expert computes a step
  request.guidance_scale = {settings.guidance};
  for (const std::string& lora : settings.loras) {
    request.loras.push_back({std::filesystem::path(lora).stem().string(), 1});
  }
  return made;
}

absl::StatusOr<bool> Run(const StopSettings& settings, Session& session) {
  EngineOptions options;
  absl::StatusOr<std::vector<ComponentResidency>> residency = ParseResidency(settings.residency);
  if (!residency.ok()) return residency.status();
  options.residency = *std::move(residency);
  absl::StatusOr<std::unique_ptr<Engine>> made = MakeWanEngine({settings.device}, options);
  if (!made.ok()) return made.status();
  Engine& engine = **made;
  ModelSpec spec{"m", settings.model};
  for (const std::string& lora : settings.loras) {
    spec.loras.push_back({std::filesystem::path(lora).stem().string(), std::nullopt, lora});
  }

  bool good = true;
  std::vector<StopPoint> of_jobs;
  for (const std::string& text : settings.stops) {
    const absl::StatusOr<StopPoint> point = ParseStop(text);
    if (!point.ok()) return point.status();
    if (!point->stage.has_value() || point->stage->kind != StageKind::kModelInitialization) {
      of_jobs.push_back(*point);
      continue;
    }
    const absl::StatusOr<bool> in_time = Measure(
        settings, session, engine, *point, [&](Recorder& recorder, const std::stop_token& stop) {
          return engine.LoadModel(spec, recorder, stop);
        });
    if (!in_time.ok()) return in_time.status();
    good = *in_time && good;
  }
  if (of_jobs.empty()) return good;

  Recorder unheard(SystemClock(), engine.Monitor(), {});
  if (absl::Status status = engine.LoadModel(spec, unheard); !status.ok()) return status;
  // Run a job first, because loading the kernels takes longer than any stop.
  if (absl::Status status = engine.Warmup("m", {}); !status.ok()) return status;
  const absl::StatusOr<GenerationRequest> request = MakeRequest(settings, engine);
  if (!request.ok()) return request.status();
  absl::StatusOr<GenerationPlan> plan = engine.Plan(*request);
  if (!plan.ok()) return plan.status();
  if (settings.tiles) plan->decode_tiles = {2, 2};
  if (settings.park) {
    for (ComponentResidency& entry : plan->residency) entry.policy = ResidencyPolicy::kHost;
  }
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / absl::StrCat("wan_bench_stop_", std::rand());
  std::filesystem::create_directories(folder);
  const std::vector<OutputFile> outputs = {{OutputKind::kMp4, folder / "video.mp4"}};
  for (const StopPoint& point : of_jobs) {
    const absl::StatusOr<bool> in_time = Measure(
        settings, session, engine, point, [&](Recorder& recorder, const std::stop_token& stop) {
          GenerationObserver observer;
          return engine.Generate(*plan, outputs, recorder, observer, stop);
        });
    if (!in_time.ok()) return in_time.status();
    good = *in_time && good;
  }
  std::filesystem::remove_all(folder);
  return good;
}

}  // namespace

BenchCommand AddStop(CLI::App& app) {
  const auto settings = std::make_shared<StopSettings>();
  AddModelFlag(app, settings->model);
  AddDeviceFlag(app, settings->device);
  AddShapeFlag(app, settings->shape);
  app.add_option("--stop", settings->stops, "STAGE@SECONDS, any number")->required();
  app.add_option("--residency", settings->residency, "COMPONENT=POLICY, any number");
  app.add_option("--lora", settings->loras, "file, any number; a job merges all of them");
  app.add_option("--steps", settings->steps)->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--guidance", settings->guidance, "1: one forward a step")->capture_default_str();
  app.add_flag("--image", settings->image, "image to video");
  app.add_flag("--tiles", settings->tiles, "decodes in 2 x 2 tiles");
  app.add_flag("--park", settings->park, "jobs begin by copying all weights to host memory");
  app.add_option("--at-most", settings->at_most, "seconds")->capture_default_str();
  return [settings](Session& session) { return Run(*settings, session); };
}

}  // namespace wan
