// Measures whole jobs of the engine, each stage separately, from the plan to the finished file. The
// server's part (queue, database, publishing) is not measured.
//
//   wan_bench job --model demo/model --device cuda:0 --repeats 5
//   wan_bench job --model synthetic:ti2v-5b --shape 1280x704x121 --steps 3 --guidance 1
//   wan_bench job --model synthetic:ti2v-5b --shape 1280x704x121 --quality fast
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "benchmarks/bench_flags.h"
#include "benchmarks/card_watch.h"
#include "benchmarks/commands.h"
#include "benchmarks/engine_job.h"
#include "benchmarks/sampler_load.h"
#include "engine/api/decoder.h"
#include "engine/api/engine_factory.h"
#include "engine/api/exact_blocks.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/costs/wan/transformer_cost.h"

namespace wan {
namespace {

struct JobSettings {
  std::string model = "demo/model";
  std::vector<std::string> devices = {"cuda:0"};
  std::string shape;  // empty: the model's default size
  int steps = 0;      // 0: the model's default number
  double guidance = 0;
  std::string vae_precision;  // empty: the engine's default precision
  std::string decoder = "full";
  std::string exact_blocks;  // EngineOptions::quality_exact_blocks
  std::string quality = "exact";
  int repeats = 5;
  int warmup = 1;
  std::string warmup_shape;  // empty: the shape of the jobs that are measured
  int samplers = 0;          // number of additional samplers that run in every second job; 0: none
  bool latents_only = false;
  std::string keep;  // where to put the file of the last job; empty: it is removed
};

// Collects the seconds of each stage of one job. Each step is a stage of its own.
class StageTimes final : public TelemetrySink {
 public:
  void OnSpanEnd(const SpanRecord& record) override { seconds[record.stage] += record.seconds; }
  std::map<Stage, double> seconds;
};

Timing TimingOf(std::vector<double> seconds) {
  std::sort(seconds.begin(), seconds.end());
  return {seconds[seconds.size() / 2], seconds.front(), seconds.back(),
          static_cast<int64_t>(seconds.size())};
}

// Returns the work of a stage: the plan's operations, in which a step's self-attention counts once
// per forward. `precision` is the precision of texts and steps; the autoencoder has a precision of
// its own.
std::optional<Work> WorkOf(const StagePlan& stage, const GenerationPlan& plan,
                           const TransformerConfig& config, const std::string& precision) {
  const double flop = stage.flops.value_or(0);
  if (flop <= 0) return std::nullopt;
  Work work{.product_flop = flop, .precision = precision};
  const bool is_vae =
      stage.stage.kind == StageKind::kVaeEncoding || stage.stage.kind == StageKind::kVaeDecoding;
  if (is_vae && plan.request.vae_precision.has_value()) {
    work.precision = NameOf(*plan.request.vae_precision);
  }
  if (stage.stage.kind == StageKind::kStepInference) {
    const double forwards = std::round(flop / TransformerForwardFlops(config, plan.tokens));
    work.attention_flop = forwards * AttentionFlops(config, plan.tokens, plan.tokens) *
                          static_cast<double>(config.num_layers);
    work.product_flop -= work.attention_flop;
  }
  return work;
}

// Returns a request for a video of `shape`. If `shape` is empty, the video has the model's default
// shape.
absl::StatusOr<GenerationRequest> MakeRequest(const JobSettings& settings, const std::string& shape,
                                              const Engine& engine) {
  absl::StatusOr<GenerationRequest> request =
      shape.empty()
          ? GenerationRequest{.model = "m", .prompt = "a red circle moves to the right", .seed = 1}
          : BenchmarkRequest(engine, shape);
  if (!request.ok()) return request;
  if (settings.steps > 0) request->steps = settings.steps;
  if (settings.guidance > 0) request->guidance_scale = {settings.guidance};
  if (settings.latents_only) request->outputs = {OutputKind::kLatents};
  request->vae_precision = ParseVaePrecision(settings.vae_precision);
  request->decoder = ParseDecoder(settings.decoder);
  request->quality = ParseQuality(settings.quality);
  return request;
}

// Removes the folder with a job's files when it is destroyed.
class Folder {
 public:
  Folder()
      : path_(std::filesystem::temp_directory_path() / absl::StrCat("wan_bench_job_", ::getpid())) {
    std::filesystem::create_directories(path_);
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string File(const char* name) const { return path_ / name; }

 private:
  const std::filesystem::path path_;
};

// Returns the name of the rows of a job with these settings.
std::string NameOfJob(const JobSettings& settings, const GenerationPlan& plan) {
  std::string name = absl::StrCat(settings.model, " ", plan.shape.width, "x", plan.shape.height,
                                  "x", plan.shape.num_frames, ", ", plan.steps.size(), " steps");
  if (!plan.guided) name += " without guidance";
  if (settings.quality != "exact") absl::StrAppend(&name, ", ", settings.quality);
  if (settings.latents_only) name += ", latents only";
  if (!settings.vae_precision.empty()) absl::StrAppend(&name, ", VAE ", settings.vae_precision);
  if (settings.decoder != "full") absl::StrAppend(&name, ", ", settings.decoder, " decoder");
  if (!settings.exact_blocks.empty()) {
    absl::StrAppend(&name, ", exact blocks ", settings.exact_blocks);
  }
  if (settings.devices.size() > 1)
    absl::StrAppend(&name, ", ", settings.devices.size(), " devices");
  return name;
}

absl::StatusOr<bool> Run(const JobSettings& settings, Session& session) {
  if (const auto device = session.Open(settings.devices.front()); !device.ok())
    return device.status();
  if (absl::Status status = session.FindCeilings(); !status.ok()) return status;
  const auto checkpoint = Checkpoint::Open(settings.model);
  if (!checkpoint.ok()) return checkpoint.status();
  const TransformerConfig config = (*checkpoint)->transformer_config();
  const absl::StatusOr<ExactBlocks> exact_blocks = ExactBlocks::Parse(settings.exact_blocks);
  if (!exact_blocks.ok()) return exact_blocks.status();
  const absl::StatusOr<std::unique_ptr<Engine>> engine =
      MakeWanEngine(settings.devices, {.quality_exact_blocks = *exact_blocks});
  if (!engine.ok()) return engine.status();
  Recorder unheard(SystemClock(), (*engine)->Monitor(), {});
  if (absl::Status status = (*engine)->LoadModel({"m", settings.model}, unheard); !status.ok()) {
    return status;
  }
  const auto make_plan = [&](const std::string& shape) -> absl::StatusOr<GenerationPlan> {
    const absl::StatusOr<GenerationRequest> request = MakeRequest(settings, shape, **engine);
    return request.ok() ? (*engine)->Plan(*request) : request.status();
  };
  const absl::StatusOr<GenerationPlan> plan = make_plan(settings.shape);
  if (!plan.ok()) return plan.status();
  const absl::StatusOr<GenerationPlan> warmup =
      make_plan(settings.warmup_shape.empty() ? settings.shape : settings.warmup_shape);
  if (!warmup.ok()) return warmup.status();
  const Folder folder;
  const std::vector<OutputFile> outputs = {
      settings.latents_only ? OutputFile{OutputKind::kLatents, folder.File("latents.safetensors")}
                            : OutputFile{OutputKind::kMp4, folder.File("video.mp4")}};

  std::map<Stage, std::vector<double>> stages;
  std::vector<double> whole;
  std::vector<double> sampled;  // the seconds of the jobs with additional samplers
  std::unique_ptr<CardWatch> watch;
  const int turns = settings.samplers > 0 ? 2 : 1;
  for (int i = 0; i < settings.warmup + settings.repeats * turns; ++i) {
    std::optional<SamplerLoad> samplers;
    if (i >= settings.warmup && (i - settings.warmup) % turns == 1) {
      samplers.emplace(session.device(), settings.samplers);
    }
    if (i == settings.warmup) watch = std::make_unique<CardWatch>(session.card());
    StageTimes times;
    Recorder recorder(SystemClock(), (*engine)->Monitor(), {&times});
    GenerationObserver observer;
    const auto begin = std::chrono::steady_clock::now();
    absl::Status status =
        (*engine)->Generate(i < settings.warmup ? *warmup : *plan, outputs, recorder, observer, {});
    if (!status.ok()) return status;
    if (i < settings.warmup) continue;
    if (samplers.has_value()) {
      sampled.push_back(SecondsSince(begin));
      continue;
    }
    whole.push_back(SecondsSince(begin));
    for (const auto& [stage, seconds] : times.seconds) stages[stage].push_back(seconds);
  }
  const CardState card = watch->Finish();
  if (!settings.keep.empty()) {
    std::filesystem::copy_file(outputs.front().path, settings.keep,
                               std::filesystem::copy_options::overwrite_existing);
  }

  const bool cpu = session.device().is_cpu();
  const std::string name = NameOfJob(settings, *plan);
  BenchRow whole_job{
      .name = absl::StrCat(name, ": whole job"), .timing = TimingOf(whole), .card = card};
  const auto reuses = [](const StepPlan& step) { return step.reuses_blocks; };
  if (const auto reused = std::count_if(plan->steps.begin(), plan->steps.end(), reuses)) {
    whole_job.figures.push_back({"reused_steps", static_cast<double>(reused)});
  }
  for (const StagePlan& stage : plan->stages) {
    const auto found = stages.find(stage.stage);
    if (found == stages.end()) continue;
    BenchRow row{.name = absl::StrCat(name, ": ", NameOf(stage.stage)),
                 .timing = TimingOf(found->second),
                 .work = WorkOf(stage, *plan, config, cpu ? "fp32" : "bf16"),
                 .card = card};
    if (row.work.has_value()) AddPart(*row.work, session.FloorSeconds(*row.work), whole_job);
    if (absl::Status status = session.Add(std::move(row)); !status.ok()) return status;
  }
  if (absl::Status status = session.Add(whole_job); !status.ok()) return status;
  if (sampled.empty()) return true;
  BenchRow beside{
      .name = absl::StrCat(name, ": whole job, ", settings.samplers, " further samplers"),
      .timing = TimingOf(sampled),
      .work = whole_job.work,
      .card = card,
      .ceiling_seconds = whole_job.ceiling_seconds};
  const double ratio = beside.timing->seconds / TimingOf(whole).seconds;
  beside.figures.push_back({"percent_per_sampler", 100 * (ratio - 1) / settings.samplers});
  if (absl::Status status = session.Add(std::move(beside)); !status.ok()) return status;
  return true;
}

}  // namespace

BenchCommand AddJob(CLI::App& app) {
  const auto settings = std::make_shared<JobSettings>();
  AddModelFlag(app, settings->model);
  app.add_option("--device", settings->devices, "cpu or cuda:N, once for each of a group")
      ->capture_default_str();
  app.add_option("--shape", settings->shape, "WIDTHxHEIGHTxFRAMES; empty: the model's default");
  app.add_option("--steps", settings->steps, "0: the model's default")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--guidance", settings->guidance, "1: one forward a step; 0: the model's default")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--vae-precision", settings->vae_precision,
                 "fp32, tf32, fp16 or bf16; without it the engine's default")
      ->check(CLI::IsMember({"fp32", "tf32", "fp16", "bf16"}));
  app.add_option("--decoder", settings->decoder, "tiny: the model's tiny decoder")
      ->check(CLI::IsMember({"full", "tiny"}))
      ->capture_default_str();
  app.add_option("--exact-blocks", settings->exact_blocks,
                 "blocks that high and fast compute exactly, for example 0,4-5,last");
  app.add_option("--quality", settings->quality, "high computes with 8 bits, fast reuses steps too")
      ->check(CLI::IsMember({"exact", "high", "fast"}))
      ->capture_default_str();
  AddRepeatsFlag(app, settings->repeats);
  AddWarmupFlag(app, settings->warmup);
  app.add_option("--warmup-shape", settings->warmup_shape,
                 "WIDTHxHEIGHTxFRAMES of the warm-up; empty: that of the measured jobs");
  app.add_option("--samplers", settings->samplers,
                 "every job runs once more beside so many further samplers of the card, in turns, "
                 "and a row says what one of them costs; 0: none")
      ->check(CLI::Range(0, 1000))
      ->capture_default_str();
  app.add_flag("--latents-only", settings->latents_only, "decodes nothing");
  app.add_option("--keep", settings->keep, "file that gets the last job's video or latents");
  return [settings](Session& session) { return Run(*settings, session); };
}

}  // namespace wan
