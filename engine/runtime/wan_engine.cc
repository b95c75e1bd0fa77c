#include "engine/runtime/wan_engine.h"

#include <ATen/DeviceAccelerator.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <optional>
#include <random>
#include <stop_token>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "engine/api/errors.h"
#include "engine/device/thread_device.h"
#include "engine/device/torch_errors.h"
#include "engine/media/image_decode.h"
#include "engine/media/image_encode.h"
#include "engine/monitor/proc_stats.h"
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

// Returns the host memory that parking these weights takes.
uint64_t UncopiedBytes(const ComponentWeights& weights) {
  return static_cast<uint64_t>(weights.Sizes().total - weights.HostBytes());
}

// Measures the time since the stop request.
class StopTimer {
 public:
  explicit StopTimer(const std::stop_token& stop) : on_stop_(stop, Note{requested_at_}) {}

  // Absent if there was no request.
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

// Call it after stopped work: waits until the device is free, and records how long that took.
void RecordStop(const absl::Status& status, const StopTimer& timer, const at::Device& device,
                Recorder& recorder) {
  if (!absl::IsCancelled(status)) return;
  // Work that was queued before the stop took effect still runs.
  const absl::Status idle = CatchTorchErrors("waiting for the device", [&] {
    if (!device.is_cpu()) at::accelerator::synchronizeDevice(device.index());
    return absl::OkStatus();
  });
  const std::optional<double> seconds = timer.Seconds();
  if (idle.ok() && seconds.has_value()) recorder.Record({"stop_seconds", *seconds, {}});
}

// The first of the devices that have a component.
std::string DeviceOf(const ComponentDescription& component) {
  return component.device.substr(0, component.device.find(','));
}

// Whether a component of another model may leave the device without a copy in host memory.
bool MayBeDropped(const PlannedComponent& component) {
  return component.policy == ResidencyPolicy::kDisk || component.policy == ResidencyPolicy::kAuto;
}

}  // namespace

uint64_t AvailableHostMemory() {
  const std::optional<SystemMemory> memory = ReadSystemMemory();
  // Never 0, because callers read 0 as unknown.
  return memory.has_value() ? std::max<uint64_t>(memory->total_bytes - memory->used_bytes, 1) : 0;
}

WanEngine::WanEngine(LoadOptions load_options, DeviceDescription device, PlanLimits limits,
                     std::unique_ptr<DeviceMonitor> monitor, MemoryProbes memory)
    : load_options_(load_options),
      device_(std::move(device)),
      limits_(limits),
      monitor_(std::move(monitor)),
      memory_(std::move(memory)) {}

absl::Status WanEngine::EnterDevice() const {
  return CatchTorchErrors("entering the device", [&] {
    UseDeviceInThread(load_options_.device);
    return absl::OkStatus();
  });
}

absl::StatusOr<std::shared_ptr<LoadedModel>> WanEngine::Find(std::string_view name) const {
  absl::MutexLock lock(&mutex_);
  const auto found = models_.find(name);
  if (found != models_.end()) return found->second;
  return WithReason(
      absl::FailedPreconditionError(absl::StrCat("model '", std::string(name), "' is not loaded")),
      "MODEL_NOT_READY");
}

absl::StatusOr<std::shared_ptr<LoadedModel>> WanEngine::Load(const ModelSpec& spec,
                                                             const std::stop_token& stop,
                                                             Span& span) {
  LoadOptions options = load_options_;
  options.span = &span;
  options.stop = stop;
  options.device_memory_bytes = MemoryFor(spec.name);
  options.host_memory_bytes = memory_.host();
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
  if (Find(spec.name).ok()) {
    // There may be no room for both, so the resident model goes as soon as its successor's files
    // are known to be good.
    absl::Status sound = CheckModelFiles(spec);
    if (sound.ok()) sound = UnloadModel(spec.name);
    if (!sound.ok()) return span.Finish(sound);
  }
  absl::StatusOr<std::shared_ptr<LoadedModel>> loaded = Load(spec, stop, span);
  if (!loaded.ok() && IsOutOfMemory(loaded.status())) {
    // Other models' weights may take the room; move them away and try again.
    const absl::Status room = ParkOthers(nullptr, /*needed_bytes=*/limits_.device_memory_bytes,
                                         /*host_bytes=*/0, stop);
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
  {
    absl::MutexLock lock(&mutex_);
    models_[spec.name] = std::move(model);
  }
  RecordMemory(recorder);
  recorder.Record(attention);
  return span.Finish();
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
  std::shared_ptr<LoadedModel> model;
  {
    absl::MutexLock lock(&mutex_);
    const auto found = models_.find(name);
    if (found == models_.end()) {
      return absl::NotFoundError(absl::StrCat("model '", std::string(name), "' is not loaded"));
    }
    model = std::move(found->second);
    models_.erase(found);
  }
  model.reset();
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
    // Spread the steps evenly, so that each expert has one.
    request.steps = static_cast<int>(planned.family->experts.size());
    request.shift = 1;
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
  // Large enough that every operator runs, also those of a decoder's second chunk.
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
  absl::StatusOr<std::shared_ptr<LoadedModel>> model = Find(name);
  return model.ok() ? PlanWarmups(**model, shapes).status() : model.status();
}

absl::Status WanEngine::Warmup(std::string_view name, std::span<const VideoShape> shapes,
                               std::stop_token stop) {
  absl::StatusOr<std::shared_ptr<LoadedModel>> model = Find(name);
  if (!model.ok()) return model.status();
  const absl::StatusOr<std::vector<GenerationPlan>> plans = PlanWarmups(**model, shapes);
  if (!plans.ok()) return plans.status();
  for (const GenerationPlan& plan : *plans) {
    Recorder unheard(SystemClock(), *monitor_, {});
    GenerationObserver observer;
    if (absl::Status status = Generate(plan, {}, unheard, observer, stop); !status.ok()) {
      return status;
    }
    absl::MutexLock lock(&mutex_);
    std::vector<VideoShape>& warm = (*model)->description.warm_shapes;
    if (std::find(warm.begin(), warm.end(), plan.shape) == warm.end()) warm.push_back(plan.shape);
  }
  return absl::OkStatus();
}

absl::StatusOr<GenerationPlan> WanEngine::Plan(const GenerationRequest& request) const {
  absl::StatusOr<std::shared_ptr<LoadedModel>> model = Find(request.model);
  if (!model.ok()) return model.status();
  const PipelineModel& pipeline = (*model)->pipeline;
  const PlanLimits limits = LimitsFor(request.model, **model);
  return PlanRequest(request, pipeline.planned, pipeline.tokenizer.get(), DrawSeed(), limits);
}

absl::StatusOr<InputImage> WanEngine::CheckImage(std::string_view image,
                                                 const Color& background) const {
  absl::StatusOr<InputImage> facts = wan::CheckImage(image, background);
  if (facts.ok()) return facts;
  return InvalidFields({{"image", std::string(facts.status().message())}});
}

uint64_t WanEngine::DeviceMemory() const {
  const uint64_t limit = limits_.device_memory_bytes;
  if (limit == 0 || memory_.device == nullptr) return limit;
  const uint64_t now = memory_.device();
  return now == 0 ? limit : std::min(limit, now);
}

uint64_t WanEngine::MemoryFor(std::string_view name) const {
  const uint64_t limit = DeviceMemory();
  if (limit == 0) return 0;
  uint64_t taken = 0;
  absl::MutexLock lock(&mutex_);
  for (const auto& [other, model] : models_) {
    if (other == name) continue;
    for (const PlannedComponent& component : model->pipeline.planned.components) {
      const bool here = !component.elsewhere;
      if (here && component.policy == ResidencyPolicy::kResident) taken += component.bytes;
    }
  }
  // Never 0, because callers read 0 as unknown.
  return taken < limit ? limit - taken : 1;
}

uint64_t WanEngine::HeldOnHost() const {
  const bool device_is_host = load_options_.device.is_cpu();
  uint64_t held = 0;
  for (const auto& [name, model] : models_) {
    for (const std::shared_ptr<ComponentWeights>& weights : model->weights) {
      if (weights == nullptr) continue;
      held += static_cast<uint64_t>(weights->HostBytes());
      if (device_is_host) held += static_cast<uint64_t>(weights->DeviceBytes());
    }
    for (const Expert& expert : model->pipeline.experts) {
      for (const ExpertReplica& replica : expert.replicas) {
        held += static_cast<uint64_t>(replica.weights->HostBytes());
        if (device_is_host) held += static_cast<uint64_t>(replica.weights->DeviceBytes());
      }
    }
  }
  return held;
}

PlanLimits WanEngine::LimitsFor(std::string_view name, const LoadedModel& model) const {
  PlanLimits limits{MemoryFor(name), {}};
  HostLimits& host = limits.host;
  host.is_device = load_options_.device.is_cpu();
  for (const std::shared_ptr<ComponentWeights>& weights : model.weights) {
    host.copies.push_back(weights == nullptr ? 0 : static_cast<uint64_t>(weights->HostBytes()));
    if (host.is_device && weights != nullptr) {
      host.weights_on_device += static_cast<uint64_t>(weights->DeviceBytes());
    }
  }
  const uint64_t now = memory_.host();
  absl::MutexLock lock(&mutex_);
  for (const auto& [other_name, other] : models_) {
    if (other_name == name || host.is_device) continue;
    for (size_t i = 0; i < other->weights.size(); ++i) {
      const PlannedComponent& component = other->pipeline.planned.components[i];
      const std::shared_ptr<ComponentWeights>& weights = other->weights[i];
      if (component.policy == ResidencyPolicy::kResident || weights == nullptr) continue;
      const auto copied = static_cast<uint64_t>(weights->HostBytes());
      host.others.push_back(
          {static_cast<uint64_t>(weights->DeviceBytes()),
           MayBeDropped(component) ? 0 : component.bytes - std::min(copied, component.bytes)});
    }
  }
  host.available_bytes = now;
  if (host_before_.has_value() && now > 0) {
    const uint64_t total = host_before_->available + host_before_->held;
    const uint64_t held = HeldOnHost();
    host.available_bytes = std::max(now, total > held ? total - held : 1);
  }
  return limits;
}

absl::Status WanEngine::CheckRoomToPark(uint64_t bytes) const {
  if (bytes == 0) return absl::OkStatus();
  const uint64_t available = memory_.host();
  if (available == 0 || bytes <= available) return absl::OkStatus();
  constexpr double kGiB = 1 << 30;
  return WithReason(
      absl::ResourceExhaustedError(absl::StrFormat(
          "the weights that must leave the device need %.1f GiB of host memory, but %.1f GiB is "
          "available to this process; raise its limit, or load fewer models",
          static_cast<double>(bytes) / kGiB, static_cast<double>(available) / kGiB)),
      "HOST_MEMORY_EXHAUSTED");
}

absl::Status WanEngine::ParkOthers(const LoadedModel* model, uint64_t needed_bytes,
                                   uint64_t host_bytes, const std::stop_token& stop) {
  const uint64_t limit = DeviceMemory();
  if (limit == 0) return absl::OkStatus();
  struct Movable {
    std::shared_ptr<ComponentWeights> weights;
    ResidencyPolicy policy;
    bool may_be_dropped;
  };
  std::vector<Movable> movable;
  std::vector<std::shared_ptr<LoadedModel>> others;
  uint64_t held = 0;
  uint64_t recorded = 0;
  {
    absl::MutexLock lock(&mutex_);
    for (const auto& [name, other] : models_) {
      if (other.get() == model) continue;
      others.push_back(other);
      for (const Expert& expert : other->pipeline.experts) {
        recorded += static_cast<uint64_t>(expert.transformer->RecordedBytes());
      }
      for (size_t i = 0; i < other->weights.size(); ++i) {
        const PlannedComponent& component = other->pipeline.planned.components[i];
        if (other->weights[i] == nullptr || component.elsewhere) continue;
        held += static_cast<uint64_t>(other->weights[i]->DeviceBytes());
        if (component.policy != ResidencyPolicy::kResident) {
          movable.push_back({other->weights[i], component.policy, MayBeDropped(component)});
        }
      }
    }
  }
  return CatchTorchErrors("making room for another model", [&]() -> absl::Status {
    if (held + recorded + needed_bytes > limit) {
      for (const std::shared_ptr<LoadedModel>& other : others) {
        for (const Expert& expert : other->pipeline.experts) {
          expert.transformer->RecordForwards(false);
        }
      }
    }
    for (const auto& [weights, policy, may_be_dropped] : movable) {
      if (held + needed_bytes <= limit) break;
      const auto bytes = static_cast<uint64_t>(weights->DeviceBytes());
      if (bytes == 0) continue;
      held -= bytes;
      const uint64_t uncopied = UncopiedBytes(*weights);
      // Leave the job its own share of host memory first.
      const absl::Status room = CheckRoomToPark(uncopied == 0 ? 0 : uncopied + host_bytes);
      if (policy == ResidencyPolicy::kDisk || (may_be_dropped && !room.ok())) {
        weights->Drop();
        continue;
      }
      if (absl::Status status = CheckRoomToPark(uncopied); !status.ok()) return status;
      weights->Park(stop);
    }
    return absl::OkStatus();
  });
}

void WanEngine::RecordMemory(Recorder& recorder) const {
  // The recorder is called without the lock: its sinks take locks of the server, whose threads ask
  // this engine for its models while they hold them.
  std::vector<Sample> samples;
  {
    absl::MutexLock lock(&mutex_);
    for (const auto& [name, model] : models_) {
      for (size_t i = 0; i < model->weights.size(); ++i) {
        const ComponentDescription& component = model->description.components[i];
        const double bytes = model->weights[i] == nullptr
                                 ? static_cast<double>(component.bytes)
                                 : static_cast<double>(model->weights[i]->DeviceBytes());
        samples.push_back({"component_memory_bytes",
                           bytes,
                           {{"model", name},
                            {"component", std::string(NameOf(component.component))},
                            {"device", DeviceOf(component)}}});
      }
      for (const Expert& expert : model->pipeline.experts) {
        for (const ExpertReplica& replica : expert.replicas) {
          samples.push_back({"component_memory_bytes",
                             static_cast<double>(replica.weights->DeviceBytes()),
                             {{"model", name},
                              {"component", std::string(NameOf(expert.component))},
                              {"device", replica.device.str()}}});
        }
      }
    }
  }
  for (const Sample& sample : samples) recorder.Record(sample);
}

absl::Status WanEngine::PrepareDevice(const GenerationPlan& plan, const LoadedModel& model,
                                      const std::stop_token& stop) {
  if (absl::Status status = ParkOthers(&model, plan.peak_device_bytes, plan.peak_host_bytes, stop);
      !status.ok()) {
    return status;
  }
  return CatchTorchErrors("making room", [&]() -> absl::Status {
    for (size_t i = 0; i < plan.residency.size(); ++i) {
      const ResidencyPolicy policy = plan.residency[i].policy;
      const bool moves = policy == ResidencyPolicy::kHost || policy == ResidencyPolicy::kStream;
      if (model.weights[i] == nullptr) continue;
      if (policy == ResidencyPolicy::kDisk) model.weights[i]->Drop();
      if (!moves) continue;
      if (absl::Status status = CheckRoomToPark(UncopiedBytes(*model.weights[i])); !status.ok()) {
        return status;
      }
      // Park now and not after the component's work, where too little memory would end the job.
      model.weights[i]->KeepHostCopy(stop);
      model.weights[i]->Park();
    }
    return absl::OkStatus();
  });
}

absl::Status WanEngine::Generate(const GenerationPlan& plan, std::span<const OutputFile> outputs,
                                 Recorder& recorder, GenerationObserver& observer,
                                 std::stop_token stop, SavepointKeeper* savepoints) {
  if (absl::Status entered = EnterDevice(); !entered.ok()) return entered;
  absl::StatusOr<std::shared_ptr<LoadedModel>> model = Find(plan.request.model);
  if (!model.ok()) return model.status();
  const StopTimer timer(stop);
  {
    const uint64_t available = memory_.host();
    absl::MutexLock lock(&mutex_);
    host_before_ = {available, HeldOnHost()};
  }
  absl::Status status = PrepareDevice(plan, **model, stop);
  if (status.ok()) {
    status = CatchTorchErrors("generating", [&] {
      return RunVideoPipeline(plan, (*model)->pipeline, outputs, recorder, observer, stop,
                              savepoints);
    });
  }
  {
    absl::MutexLock lock(&mutex_);
    host_before_.reset();
  }
  RecordStop(status, timer, load_options_.device, recorder);
  if (IsOutOfMemory(status)) ReleaseCachedMemory(load_options_.device);
  RecordMemory(recorder);
  return status;
}

std::vector<ModelDescription> WanEngine::Models() const {
  absl::MutexLock lock(&mutex_);
  std::vector<ModelDescription> descriptions;
  for (const auto& [name, model] : models_) descriptions.push_back(model->description);
  return descriptions;
}

}  // namespace wan
