// The Engine that runs real models: what is resident, and the boundary where exceptions become
// statuses.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "engine/api/engine.h"
#include "engine/api/engine_factory.h"
#include "engine/runtime/machine_monitor.h"
#include "engine/runtime/model_loading.h"

namespace wan {

class WanEngine final : public Engine {
 public:
  WanEngine(LoadOptions load_options, DeviceDescription device, PlanLimits limits,
            std::unique_ptr<MachineMonitor> monitor);

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
  absl::StatusOr<std::shared_ptr<LoadedModel>> Find(std::string_view name) const;
  absl::Status WarmupShape(const LoadedModel& model, const VideoShape& shape);

  const LoadOptions load_options_;
  const DeviceDescription device_;
  const PlanLimits limits_;
  const std::unique_ptr<MachineMonitor> monitor_;

  mutable absl::Mutex mutex_;
  std::map<std::string, std::shared_ptr<LoadedModel>, std::less<>> models_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace wan
