// The Engine that runs real models: which are loaded, whose weights are on the device, and the
// boundary where exceptions become statuses.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "engine/api/engine.h"
#include "engine/api/engine_factory.h"
#include "engine/monitor/machine_monitor.h"
#include "engine/planning/plan_limits.h"
#include "engine/runtime/model_loading.h"

namespace wan {

class WanEngine final : public Engine {
 public:
  WanEngine(LoadOptions load_options, DeviceDescription device, PlanLimits limits,
            std::unique_ptr<MachineMonitor> monitor);

  absl::StatusOr<std::optional<DeviceCanary>> RunCanary() override;
  absl::Status LoadModel(const ModelSpec& spec, Recorder& recorder) override;
  absl::Status UnloadModel(std::string_view name) override;
  absl::Status Warmup(std::string_view name, std::span<const VideoShape> shapes) override;
  absl::StatusOr<GenerationPlan> Plan(const GenerationRequest& request) const override;
  absl::Status Generate(const GenerationPlan& plan, std::span<const OutputFile> outputs,
                        Recorder& recorder, GenerationObserver& observer,
                        std::stop_token stop) override;
  std::vector<ModelDescription> Models() const override;
  DeviceDescription Device() const override { return device_; }
  DeviceMonitor& Monitor() override { return *monitor_; }

 private:
  // Makes the device the calling thread's. The executor is a thread of the server's, and CUDA would
  // put what it does on GPU 0.
  absl::Status EnterDevice() const;
  absl::StatusOr<std::shared_ptr<LoadedModel>> Find(std::string_view name) const;
  absl::StatusOr<std::shared_ptr<LoadedModel>> Load(const ModelSpec& spec);
  // What a job of a model may hold of the device: all but what other models never give back.
  uint64_t MemoryFor(std::string_view name) const;
  // Weights of models other than `model` leave the device, as many as must so that `needed_bytes`
  // fit.
  absl::Status ParkOthers(const LoadedModel* model, uint64_t needed_bytes);
  // Weights that the plan does not want on the device all the time leave it.
  absl::Status PrepareDevice(const GenerationPlan& plan, const LoadedModel& model);
  // What every model's components hold of the device now.
  void RecordMemory(Recorder& recorder) const;
  absl::Status WarmupShape(const LoadedModel& model, const VideoShape& shape);

  const LoadOptions load_options_;
  const DeviceDescription device_;
  const PlanLimits limits_;
  const std::unique_ptr<MachineMonitor> monitor_;

  mutable absl::Mutex mutex_;
  std::map<std::string, std::shared_ptr<LoadedModel>, std::less<>> models_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace wan
