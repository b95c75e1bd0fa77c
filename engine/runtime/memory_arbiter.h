// Arbitrates memory between models: decides whose weights are on the device, and how much memory a
// job may use.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string_view>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "engine/api/generation.h"
#include "engine/api/recorder.h"
#include "engine/planning/plan_limits.h"
#include "engine/runtime/loaded_models.h"

namespace wan {

// Returns how many bytes the process may use; 0: unknown.
using MemoryProbe = std::function<uint64_t()>;

// Returns the host memory that the control group or the machine has left, whichever is less.
uint64_t AvailableHostMemory();

// The functions report the memory that is available now, because other processes take and release
// memory while the server runs.
struct MemoryProbes {
  // Reports the host memory that the process may still use.
  MemoryProbe host = AvailableHostMemory;
  // Reports the device memory that the process may use for weights and activations, including what
  // it uses already. If empty, only the limit at the engine's start is known.
  MemoryProbe device = nullptr;
};

// Any thread may call the const methods at any time. Only the computing thread may call the other
// methods.
class MemoryArbiter {
 public:
  // `models` must outlive the object. `limits` are those at the start of the engine.
  MemoryArbiter(const LoadedModels& models, c10::Device device, const PlanLimits& limits,
                MemoryProbes probes);

  // Returns the device memory that the model `name` and its jobs may use: the memory that the
  // process may use now, minus the weights that other models never free. Returns 0 if there is no
  // limit.
  uint64_t DeviceMemoryFor(std::string_view name) const;
  // Returns the host memory that the process may still take; 0: unknown.
  uint64_t HostMemory() const { return probes_.host(); }
  // Returns the device and host memory that a job of `model`, whose name is `name`, may use now.
  PlanLimits LimitsFor(std::string_view name, const LoadedModel& model) const;

  // Passes the device memory of each component of each model to `recorder`.
  void RecordMemory(Recorder& recorder) const;

  // Moves all weights off the device, except those whose policy keeps them there. CANCELLED after a
  // stop request; RESOURCE_EXHAUSTED (HOST_MEMORY_EXHAUSTED) if the host has no room for the
  // weights.
  absl::Status ClearDevice(const std::stop_token& stop);
  // Makes room for a job. Moves weights of other models off the device until the job fits. Also
  // moves weights of the job's model off the device if the plan does not keep them there. Returns
  // the errors of ClearDevice.
  absl::Status PrepareDevice(const GenerationPlan& plan, const LoadedModel& model,
                             const std::stop_token& stop);

  // Exists while a job runs. Meanwhile, host memory that the job uses only temporarily counts as
  // free when other jobs are planned.
  class RunningJob {
   public:
    explicit RunningJob(MemoryArbiter& arbiter);
    ~RunningJob();
    RunningJob(const RunningJob&) = delete;
    RunningJob& operator=(const RunningJob&) = delete;

   private:
    MemoryArbiter& arbiter_;
  };

 private:
  // Returns the bytes of device memory that all models together may use now: the limit at the
  // engine's start, or less if other processes have taken memory since; 0: no limit.
  uint64_t DeviceMemory() const;
  // Returns the bytes of host memory that the weights of all models take.
  uint64_t HeldOnHost() const;
  // RESOURCE_EXHAUSTED if the host has too little memory left to park `bytes` of weights.
  absl::Status CheckRoomToPark(uint64_t bytes) const;
  // Moves the weights of models other than `model` off the device until `needed_bytes` fit there.
  // Copies weights to host memory as long as the copy leaves `host_bytes` of host memory to the
  // job. If a copy would leave less, drops the weights if no configured policy keeps them in host
  // memory. Their model's next job reads dropped weights again.
  absl::Status ParkOthers(const LoadedModel* model, uint64_t needed_bytes, uint64_t host_bytes,
                          const std::stop_token& stop);

  const LoadedModels& models_;
  const c10::Device device_;
  const PlanLimits limits_;
  const MemoryProbes probes_;

  mutable absl::Mutex mutex_;
  // Set while a job runs: the host memory that was available before the job, plus the host memory
  // that the models held then.
  std::optional<uint64_t> host_total_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace wan
