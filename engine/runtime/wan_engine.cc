#include "engine/runtime/wan_engine.h"

#include <ATen/DeviceAccelerator.h>

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <random>
#include <stop_token>
#include <string>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/api/errors.h"
#include "engine/device/thread_device.h"
#include "engine/device/torch_errors.h"
#include "engine/media/image_decode.h"
#include "engine/media/image_encode.h"
#include "engine/pipeline/preprocess.h"
#include "engine/pipeline/video_pipeline.h"
#include "engine/runtime/attention_report.h"
#include "engine/runtime/canary.h"

namespace wan {
namespace {

int64_t DrawSeed() {
  std::random_device source;
  const uint64_t bits = (static_cast<uint64_t>(source()) << 32) | source();
  return static_cast<int64_t>(bits >> 1);
}

// Measures how much time has passed since a stop was requested.
class StopTimer {
 public:
  explicit StopTimer(const std::stop_token& stop) : on_stop_(stop, Note{requested_at_}) {}

  // Returns nullopt if no stop was requested.
  std::optional<double> Seconds() const {
    const int64_t requested_at = requested_at_;
    if (requested_at == 0) return std::nullopt;
    return static_cast<double>(SystemClock().MonotonicNanos() - requested_at) * 1e-9;
  }

 private:
  struct Note {
    std::atomic<int64_t>& requested_at;
    void operator()() const { requested_at = SystemClock().MonotonicNanos(); }
  };

  std::atomic<int64_t> requested_at_{0};
  const std::stop_callback<Note> on_stop_;
};

// Call RecordStop after work has stopped. Waits until the device is idle, and records how long the
// stop took.
void RecordStop(const absl::Status& status, const StopTimer& timer, const at::Device& device,
                Recorder& recorder) {
  if (!absl::IsCancelled(status)) return;
  // Wait, because work that was queued before the stop still runs.
  const absl::Status idle = CatchTorchErrors("waiting for the device", [&] {
    if (!device.is_cpu()) at::accelerator::synchronizeDevice(device.index());
    return absl::OkStatus();
  });
  const std::optional<double> seconds = timer.Seconds();
  if (idle.ok() && seconds.has_value()) recorder.Record({"stop_seconds", *seconds, {}});
}

// Returns whether two paths name the same file or folder, possibly through a link.
bool IsSamePath(const std::string& one, const std::string& other) {
  std::error_code error;
  return one == other || std::filesystem::equivalent(one, other, error);
}

}  // namespace

WanEngine::WanEngine(LoadOptions load_options, DeviceDescription device, PlanLimits limits,
                     std::unique_ptr<DeviceMonitor> monitor, MemoryProbes memory)
    : load_options_(std::move(load_options)),
      device_(std::move(device)),
      monitor_(std::move(monitor)),
      memory_(models_, load_options_.device, limits, std::move(memory)) {}

absl::Status WanEngine::EnterDevice() const {
  return CatchTorchErrors("entering the device", [&] {
    UseDeviceInThread(load_options_.device);
    return absl::OkStatus();
  });
}

absl::StatusOr<std::shared_ptr<LoadedModel>> WanEngine::Load(const ModelSpec& spec,
                                                             const std::stop_token& stop,
                                                             Span& span) {
  LoadOptions options = load_options_;
  options.span = &span;
  options.stop = stop;
  options.device_memory_bytes = memory_.DeviceMemoryFor(spec.name);
  options.host_memory_bytes = memory_.HostMemory();
  std::shared_ptr<LoadedModel> model;
  absl::Status status =
      CatchTorchErrors(absl::StrCat("loading '", spec.name, "'"), [&]() -> absl::Status {
        absl::StatusOr<std::shared_ptr<LoadedModel>> loaded =
            LoadModelFromCheckpoint(spec, options);
        if (!loaded.ok()) return loaded.status();
        model = *std::move(loaded);
        if (!options.device.is_cpu()) at::accelerator::synchronizeDevice(options.device.index());
        return absl::OkStatus();
      });
  if (status.ok()) return model;
  ReleaseCachedMemory(options.device);
  return status;
}

absl::Status WanEngine::LoadModel(const ModelSpec& spec, Recorder& recorder, std::stop_token stop) {
  if (absl::Status status = EnterDevice(); !status.ok()) return status;
  const StopTimer timer(stop);
  Span span = recorder.StartSpan(StageKind::kModelInitialization);
  bool is_resident = false;
  if (const auto resident = models_.Find(spec.name); resident.ok()) {
    if (IsSamePath((*resident)->description.path, spec.path)) {
      const absl::Status replaced = ReplaceLoras(**resident, spec, stop, span);
      RecordStop(replaced, timer, load_options_.device, recorder);
      memory_.RecordMemory(recorder);
      return span.Finish(replaced);
    }
    is_resident = true;
  }
  if (is_resident) {
    // Check the new files before the resident model is freed: there may be no memory for both.
    absl::Status sound = CheckModelFiles(spec);
    if (sound.ok()) sound = UnloadModel(spec.name);
    if (!sound.ok()) return span.Finish(sound);
  }
  absl::StatusOr<std::shared_ptr<LoadedModel>> loaded = Load(spec, stop, span);
  if (!loaded.ok() && IsOutOfMemory(loaded.status())) {
    // The weights of other models may occupy the memory, so move them away and try once more.
    const absl::Status room = memory_.ClearDevice(stop);
    if (room.ok()) {
      loaded = Load(spec, stop, span);
    } else {
      loaded = room;
    }
  }
  if (!loaded.ok()) {
    RecordStop(loaded.status(), timer, load_options_.device, recorder);
    return span.Finish(loaded.status());
  }
  std::shared_ptr<LoadedModel> model = *std::move(loaded);
  const Sample attention = AttentionKernels(*model, load_options_);
  models_.Put(spec.name, std::move(model));
  memory_.RecordMemory(recorder);
  recorder.Record(attention);
  return span.Finish();
}

absl::Status WanEngine::ReplaceLoras(const LoadedModel& model, const ModelSpec& spec,
                                     const std::stop_token& stop, Span& span) {
  LoadOptions options = load_options_;
  options.span = &span;
  options.stop = stop;
  options.host_memory_bytes = memory_.HostMemory();
  absl::Status status =
      CatchTorchErrors(absl::StrCat("loading the LoRAs of '", spec.name, "'"), [&] {
        absl::StatusOr<std::shared_ptr<LoadedModel>> changed = WithOtherLoras(model, spec, options);
        if (changed.ok()) models_.Put(spec.name, *std::move(changed));
        return changed.status();
      });
  if (!status.ok()) ReleaseCachedMemory(load_options_.device);
  return status;
}

absl::StatusOr<std::optional<DeviceCanary>> WanEngine::RunCanary() {
  if (load_options_.device.is_cpu()) return std::nullopt;
  if (absl::Status status = EnterDevice(); !status.ok()) return status;
  absl::StatusOr<DeviceCanary> canary =
      RunGroupCanary(load_options_.device, load_options_.peers, load_options_.dtype);
  ReleaseCachedMemory(load_options_.device);
  if (!canary.ok()) return canary.status();
  return *std::move(canary);
}

absl::Status WanEngine::UnloadModel(std::string_view name) {
  if (absl::Status status = EnterDevice(); !status.ok()) return status;
  absl::StatusOr<std::shared_ptr<LoadedModel>> model = models_.Take(name);
  if (!model.ok()) return model.status();
  model->reset();
  ReleaseCachedMemory(load_options_.device);
  return absl::OkStatus();
}

absl::StatusOr<GenerationPlan> WanEngine::PlanWarmup(const LoadedModel& model,
                                                     const VideoShape& shape) const {
  GenerationRequest request;
  request.model = model.description.name;
  request.prompt = "warm-up";
  request.width = shape.width;
  request.height = shape.height;
  request.num_frames = shape.num_frames;
  request.size_is_exact = true;
  const PlannedModel& planned = model.pipeline.planned;
  if (!planned.few_step.has_value()) {
    // A shift of 1 spreads the steps evenly, so that each expert gets one of them.
    request.steps = static_cast<int>(planned.family->experts.size());
    request.shift = 1;
    // A schedule of so few steps cannot skip any.
    if (planned.options.quality == Quality::kFast) request.quality = Quality::kHigh;
  }
  if (!planned.family->accepts_text_only) {
    constexpr int kSide = 16;
    absl::StatusOr<std::string> black =
        EncodePng(std::vector<uint8_t>(3 * kSide * kSide), kSide, kSide);
    if (!black.ok()) return black.status();
    request.image = std::make_shared<const std::string>(*std::move(black));
  }
  request.seed = 0;
  return Plan(request);
}

absl::StatusOr<std::vector<GenerationPlan>> WanEngine::PlanWarmups(
    const LoadedModel& model, std::span<const VideoShape> shapes) const {
  // This size is just large enough that every operator runs, including the operators of a decoder's
  // second chunk.
  const int stride = model.description.spatial_stride;
  const VideoShape small{2 * stride, 2 * stride, model.description.temporal_stride + 1};
  if (shapes.empty()) shapes = std::span(&small, 1);
  std::vector<GenerationPlan> plans;
  std::vector<FieldViolation> violations;
  for (size_t i = 0; i < shapes.size(); ++i) {
    absl::StatusOr<GenerationPlan> plan = PlanWarmup(model, shapes[i]);
    for (const FieldViolation& violation : FieldViolationsOf(plan.status())) {
      violations.push_back(
          {absl::StrCat("shapes[", i, "].", violation.field), violation.description});
    }
    if (plan.ok()) {
      plans.push_back(*std::move(plan));
    } else if (violations.empty()) {
      return plan.status();
    }
  }
  if (!violations.empty()) return InvalidFields(violations);
  return plans;
}

absl::Status WanEngine::CheckWarmup(std::string_view name,
                                    std::span<const VideoShape> shapes) const {
  absl::StatusOr<std::shared_ptr<LoadedModel>> model = models_.Find(name);
  return model.ok() ? PlanWarmups(**model, shapes).status() : model.status();
}

absl::Status WanEngine::Warmup(std::string_view name, std::span<const VideoShape> shapes,
                               std::stop_token stop) {
  absl::StatusOr<std::shared_ptr<LoadedModel>> model = models_.Find(name);
  if (!model.ok()) return model.status();
  const absl::StatusOr<std::vector<GenerationPlan>> plans = PlanWarmups(**model, shapes);
  if (!plans.ok()) return plans.status();
  for (const GenerationPlan& plan : *plans) {
    Recorder unheard(SystemClock(), *monitor_, {});
    GenerationObserver observer;
    if (absl::Status status = Generate(plan, {}, unheard, observer, stop); !status.ok()) {
      return status;
    }
    models_.AddWarmShape(plan.shape, **model);
  }
  return absl::OkStatus();
}

absl::StatusOr<GenerationPlan> WanEngine::Plan(const GenerationRequest& request) const {
  absl::StatusOr<std::shared_ptr<LoadedModel>> model = models_.Find(request.model);
  if (!model.ok()) return model.status();
  const PipelineModel& pipeline = (*model)->pipeline;
  const PlanLimits limits = memory_.LimitsFor(request.model, **model);
  return PlanRequest(request, pipeline.planned, pipeline.tokenizer.get(), DrawSeed(), limits);
}

absl::StatusOr<InputImage> WanEngine::CheckImage(std::string_view image,
                                                 const Color& background) const {
  absl::StatusOr<InputImage> facts = wan::CheckImage(image, background);
  if (facts.ok()) return facts;
  return InvalidFields({{"image", std::string(facts.status().message())}});
}

absl::Status WanEngine::Generate(const GenerationPlan& plan, std::span<const OutputFile> outputs,
                                 Recorder& recorder, GenerationObserver& observer,
                                 std::stop_token stop, SavepointKeeper* savepoints) {
  if (absl::Status entered = EnterDevice(); !entered.ok()) return entered;
  absl::StatusOr<std::shared_ptr<LoadedModel>> model = models_.Find(plan.request.model);
  if (!model.ok()) return model.status();
  const StopTimer timer(stop);
  absl::Status status;
  {
    const MemoryArbiter::RunningJob running(memory_);
    status = memory_.PrepareDevice(plan, **model, stop);
    if (status.ok()) {
      status = CatchTorchErrors("generating", [&] {
        return RunVideoPipeline(plan, (*model)->pipeline, outputs, recorder, observer, stop,
                                savepoints);
      });
    }
  }
  RecordStop(status, timer, load_options_.device, recorder);
  if (IsOutOfMemory(status)) ReleaseCachedMemory(load_options_.device);
  memory_.RecordMemory(recorder);
  return status;
}

}  // namespace wan
