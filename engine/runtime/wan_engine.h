// The implementation of Engine that runs real models. WanEngine forwards each call to the part of
// the engine that does the work, and turns exceptions into statuses.
#pragma once

#include <memory>
#include <optional>
#include <stop_token>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/api/engine.h"
#include "engine/planning/plan_limits.h"
#include "engine/runtime/load_options.h"
#include "engine/runtime/loaded_models.h"
#include "engine/runtime/memory_arbiter.h"

namespace wan {

class WanEngine final : public Engine {
 public:
  WanEngine(LoadOptions load_options, DeviceDescription device, PlanLimits limits,
            std::unique_ptr<DeviceMonitor> monitor, MemoryProbes memory = {});

  absl::StatusOr<std::optional<DeviceCanary>> RunCanary() override;
  absl::Status LoadModel(const ModelSpec& spec, Recorder& recorder, std::stop_token stop) override;
  absl::Status UnloadModel(std::string_view name) override;
  absl::Status Warmup(std::string_view name, std::span<const VideoShape> shapes,
                      std::stop_token stop) override;
  absl::Status CheckWarmup(std::string_view name,
                           std::span<const VideoShape> shapes) const override;
  absl::StatusOr<GenerationPlan> Plan(const GenerationRequest& request) const override;
  absl::StatusOr<InputImage> CheckImage(std::string_view image,
                                        const Color& background) const override;
  absl::Status Generate(const GenerationPlan& plan, std::span<const OutputFile> outputs,
                        Recorder& recorder, GenerationObserver& observer, std::stop_token stop,
                        SavepointKeeper* savepoints = nullptr) override;
  std::vector<ModelDescription> Models() const override { return models_.Describe(); }
  DeviceDescription Device() const override { return device_; }
  DeviceMonitor& Monitor() override { return *monitor_; }

 private:
  // Makes the engine's device the current one in the calling thread. The server calls on its
  // executor thread, where CUDA would otherwise use GPU 0.
  absl::Status EnterDevice() const;
  absl::StatusOr<std::shared_ptr<LoadedModel>> Load(const ModelSpec& spec,
                                                    const std::stop_token& stop, Span& span);
  // Replaces the LoRAs of a resident model by those of `spec`. After an error the model keeps its
  // previous LoRAs.
  absl::Status ReplaceLoras(const LoadedModel& model, const ModelSpec& spec,
                            const std::stop_token& stop, Span& span);
  // Plans the shortest job of `shape` that runs all code of jobs of that shape.
  absl::StatusOr<GenerationPlan> PlanWarmup(const LoadedModel& model,
                                            const VideoShape& shape) const;
  // Returns one plan per shape; if `shapes` is empty, returns one plan for a small shape.
  // INVALID_ARGUMENT with the violations of all shapes.
  absl::StatusOr<std::vector<GenerationPlan>> PlanWarmups(const LoadedModel& model,
                                                          std::span<const VideoShape> shapes) const;

  const LoadOptions load_options_;
  const DeviceDescription device_;
  const std::unique_ptr<DeviceMonitor> monitor_;
  LoadedModels models_;
  MemoryArbiter memory_;
};

}  // namespace wan
