// The Engine that runs real models. It decides which models' weights are on the device, and turns
// exceptions into statuses.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "engine/api/engine.h"
#include "engine/api/engine_factory.h"
#include "engine/planning/plan_limits.h"
#include "engine/runtime/model_loading.h"

namespace wan {

// Returns memory that this process may use, in bytes; 0 if that is unknown. Called from any thread,
// also while a job runs.
using MemoryProbe = std::function<uint64_t()>;

// Returns what the control group leaves, or what the machine has left if that is less.
uint64_t AvailableHostMemory();

// Where the engine asks how much memory there is now: other processes take some and give it back
// while the server runs.
struct MemoryProbes {
  // Returns the host memory that the process may still take.
  MemoryProbe host = AvailableHostMemory;
  // Returns the device memory that weights and activations of the process have or may still take.
  // Empty: only the limit of the start is known.
  MemoryProbe device = nullptr;
};

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
  std::vector<ModelDescription> Models() const override;
  DeviceDescription Device() const override { return device_; }
  DeviceMonitor& Monitor() override { return *monitor_; }

 private:
  // Makes the device the calling thread's. The calls come from the server's executor, whose CUDA
  // calls would go to GPU 0 otherwise.
  absl::Status EnterDevice() const;
  absl::StatusOr<std::shared_ptr<LoadedModel>> Find(std::string_view name) const;
  absl::StatusOr<std::shared_ptr<LoadedModel>> Load(const ModelSpec& spec,
                                                    const std::stop_token& stop, Span& span);
  // Returns what all models together may hold of the device now: the limit of the start, or less if
  // other processes have taken some since; 0 if there is no limit.
  uint64_t DeviceMemory() const;
  // Returns the device memory that a job of a model may hold: all but what other models never free.
  uint64_t MemoryFor(std::string_view name) const;
  // Returns the memory that a job of `model`, whose name is `name`, may use now on device and host.
  PlanLimits LimitsFor(std::string_view name, const LoadedModel& model) const;
  // Returns the bytes of weights that all models hold in host memory.
  uint64_t HeldOnHost() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // RESOURCE_EXHAUSTED if parking `bytes` of weights would take more host memory than there is.
  absl::Status CheckRoomToPark(uint64_t bytes) const;
  // Moves weights of models other than `model` off the device until `needed_bytes` fit. They get
  // copies in host memory as long as `host_bytes` are left for the job; after that, weights that no
  // configured policy keeps there are dropped, and their next job reads them again. CANCELLED after
  // a stop request.
  absl::Status ParkOthers(const LoadedModel* model, uint64_t needed_bytes, uint64_t host_bytes,
                          const std::stop_token& stop);
  // Moves weights off the device that the plan does not keep there all the time. CANCELLED after a
  // stop request.
  absl::Status PrepareDevice(const GenerationPlan& plan, const LoadedModel& model,
                             const std::stop_token& stop);
  // Records the device memory that each component of each model holds now.
  void RecordMemory(Recorder& recorder) const;
  // Plans the shortest job of a shape that runs all code that its jobs run.
  absl::StatusOr<GenerationPlan> PlanWarmup(const LoadedModel& model,
                                            const VideoShape& shape) const;
  // Returns one plan for each shape, or one for a small shape if there is none. INVALID_ARGUMENT
  // with the violations of all shapes.
  absl::StatusOr<std::vector<GenerationPlan>> PlanWarmups(const LoadedModel& model,
                                                          std::span<const VideoShape> shapes) const;

  const LoadOptions load_options_;
  const DeviceDescription device_;
  const PlanLimits limits_;
  const std::unique_ptr<DeviceMonitor> monitor_;
  const MemoryProbes memory_;

  mutable absl::Mutex mutex_;
  std::map<std::string, std::shared_ptr<LoadedModel>, std::less<>> models_ ABSL_GUARDED_BY(mutex_);
  // The host's memory before the running job: what that job takes for a while counts as free for
  // jobs that are planned meanwhile.
  struct HostBefore {
    uint64_t available = 0;
    uint64_t held = 0;
  };
  std::optional<HostBefore> host_before_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace wan
