#include "engine/runtime/wan_engine.h"

#include <ATen/DeviceAccelerator.h>
#include <c10/core/InferenceMode.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <cstdint>
#include <exception>
#include <new>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/media/image_encode.h"
#include "engine/pipeline/preprocess.h"

namespace wan {
namespace {

// LibTorch throws from anywhere below; this is the one place where that ends.
template <typename Work>
absl::Status Guarded(std::string_view what, Work work) {
  const std::string doing(what);
  try {
    const c10::InferenceMode inference_mode;
    return work();
  } catch (const c10::OutOfMemoryError& error) {
    return WithReason(absl::ResourceExhaustedError(absl::StrCat(
                          doing, ": out of device memory: ", error.what_without_backtrace())),
                      "OUT_OF_MEMORY");
  } catch (const c10::Error& error) {
    const std::string message = error.what_without_backtrace();
    // The CPU allocator reports exhaustion as a plain error.
    if (message.find("can't allocate memory") != std::string::npos) {
      return WithReason(absl::ResourceExhaustedError(absl::StrCat(doing, ": ", message)),
                        "OUT_OF_MEMORY");
    }
    return absl::InternalError(absl::StrCat(doing, ": ", message));
  } catch (const std::bad_alloc&) {
    return WithReason(absl::ResourceExhaustedError(absl::StrCat(doing, ": out of memory")),
                      "OUT_OF_MEMORY");
  } catch (const std::exception& error) {
    return absl::InternalError(absl::StrCat(doing, ": ", error.what()));
  }
}

// Gives blocks that nobody uses back to the card, so that the next model or job can have them in
// any size.
void ReleaseCachedMemory(const at::Device& device) {
  if (!device.is_cpu()) at::accelerator::emptyCache();
}

int64_t DrawSeed() {
  std::random_device source;
  const uint64_t bits = (static_cast<uint64_t>(source()) << 32) | source();
  return static_cast<int64_t>(bits >> 1);
}

}  // namespace

WanEngine::WanEngine(LoadOptions load_options, DeviceDescription device, PlanLimits limits,
                     std::unique_ptr<MachineMonitor> monitor)
    : load_options_(load_options),
      device_(std::move(device)),
      limits_(limits),
      monitor_(std::move(monitor)) {}

absl::StatusOr<std::shared_ptr<LoadedModel>> WanEngine::Find(std::string_view name) const {
  absl::MutexLock lock(&mutex_);
  const auto found = models_.find(name);
  if (found != models_.end()) return found->second;
  return WithReason(absl::FailedPreconditionError(
                        absl::StrCat("model '", std::string(name), "' is not resident")),
                    "MODEL_NOT_READY");
}

absl::Status WanEngine::LoadModel(const ModelSpec& spec, Recorder& recorder) {
  Span span = recorder.StartSpan(kStageModelInitialization);
  std::shared_ptr<LoadedModel> model;
  absl::Status status = Guarded(absl::StrCat("loading '", spec.name, "'"), [&]() -> absl::Status {
    absl::StatusOr<std::shared_ptr<LoadedModel>> loaded =
        LoadModelFromCheckpoint(spec, load_options_);
    if (!loaded.ok()) return loaded.status();
    model = *std::move(loaded);
    if (!load_options_.device.is_cpu()) {
      at::accelerator::synchronizeDevice(load_options_.device.index());
    }
    return absl::OkStatus();
  });
  if (!status.ok()) {
    ReleaseCachedMemory(load_options_.device);
    return span.Finish(status);
  }
  for (const ComponentDescription& component : model->description.components) {
    recorder.Record(
        {"component_memory_bytes",
         static_cast<double>(component.bytes),
         {{"model", spec.name}, {"component", component.name}, {"device", component.device}}});
  }
  {
    absl::MutexLock lock(&mutex_);
    models_[spec.name] = std::move(model);
  }
  return span.Finish();
}

absl::Status WanEngine::UnloadModel(std::string_view name) {
  std::shared_ptr<LoadedModel> model;
  {
    absl::MutexLock lock(&mutex_);
    const auto found = models_.find(name);
    if (found == models_.end()) {
      return absl::NotFoundError(absl::StrCat("model '", std::string(name), "' is not resident"));
    }
    model = std::move(found->second);
    models_.erase(found);
  }
  model.reset();
  ReleaseCachedMemory(load_options_.device);
  return absl::OkStatus();
}

absl::Status WanEngine::WarmupShape(const LoadedModel& model, const VideoShape& shape) {
  GenerationRequest request;
  request.model = model.description.name;
  request.prompt = "warm-up";
  request.width = shape.width;
  request.height = shape.height;
  request.num_frames = shape.num_frames;
  request.size_is_exact = true;
  const PlannedModel& planned = model.pipeline.planned;
  if (!planned.few_step.has_value()) {
    // Evenly spread, so that each expert has a step.
    request.steps = planned.family->experts;
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
  absl::StatusOr<GenerationPlan> plan = Plan(request);
  if (!plan.ok()) return plan.status();
  Recorder unheard(SystemClock(), *monitor_, {});
  GenerationObserver observer;
  return Generate(*plan, {}, unheard, observer, {});
}

absl::Status WanEngine::Warmup(std::string_view name, std::span<const VideoShape> shapes) {
  absl::StatusOr<std::shared_ptr<LoadedModel>> model = Find(name);
  if (!model.ok()) return model.status();
  // Large enough that every operator runs, also those of a decoder's second chunk.
  const int stride = (*model)->description.spatial_stride;
  const VideoShape small{2 * stride, 2 * stride, (*model)->description.temporal_stride + 1};
  if (shapes.empty()) shapes = std::span(&small, 1);
  for (const VideoShape& shape : shapes) {
    if (absl::Status status = WarmupShape(**model, shape); !status.ok()) return status;
    absl::MutexLock lock(&mutex_);
    std::vector<VideoShape>& warm = (*model)->description.warm_shapes;
    if (std::find(warm.begin(), warm.end(), shape) == warm.end()) warm.push_back(shape);
  }
  return absl::OkStatus();
}

absl::StatusOr<GenerationPlan> WanEngine::Plan(const GenerationRequest& request) const {
  absl::StatusOr<std::shared_ptr<LoadedModel>> model = Find(request.model);
  if (!model.ok()) return model.status();
  const PipelineModel& pipeline = (*model)->pipeline;
  const InspectedRequest inspected =
      InspectRequest(request, pipeline.planned, pipeline.tokenizer.get());
  return MakePlan(request, pipeline.planned, inspected, DrawSeed(), limits_);
}

absl::Status WanEngine::Generate(const GenerationPlan& plan, std::span<const OutputFile> outputs,
                                 Recorder& recorder, GenerationObserver& observer,
                                 std::stop_token stop) {
  absl::StatusOr<std::shared_ptr<LoadedModel>> model = Find(plan.request.model);
  if (!model.ok()) return model.status();
  absl::Status status = Guarded("generating", [&] {
    return RunVideoPipeline(plan, (*model)->pipeline, outputs, recorder, observer, stop);
  });
  if (absl::IsResourceExhausted(status)) ReleaseCachedMemory(load_options_.device);
  return status;
}

std::vector<ModelDescription> WanEngine::Models() const {
  absl::MutexLock lock(&mutex_);
  std::vector<ModelDescription> descriptions;
  for (const auto& [name, model] : models_) descriptions.push_back(model->description);
  return descriptions;
}

}  // namespace wan
