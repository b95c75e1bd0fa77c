// Arbitrates memory between models: whose weights are on the device, and how much memory a job may
// use.
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

// Returns how many bytes this process may use; 0: unknown.
using MemoryProbe = std::function<uint64_t()>;

// Returns what the control group or the machine has left, whichever is less.
uint64_t AvailableHostMemory();

// Report the memory available now, because other processes take and release memory while the server
// runs.
struct MemoryProbes {
  // Host memory that the process may still use.
  MemoryProbe host = AvailableHostMemory;
  // Device memory that weights and activations of the process use or may still use. Empty: only the
  // limit given at the start is known.
  MemoryProbe device = nullptr;
};

// Any thread may call the const methods at any time; the others belong to the computing thread.
class MemoryArbiter {
 public:
  // `models` must outlive the object. `limits` are those at the engine's start.
  MemoryArbiter(const LoadedModels& models, c10::Device device, const PlanLimits& limits,
                MemoryProbes probes);

  // Returns the device memory that model `name` and its jobs may use: what the process may use now,
  // minus what other models never free. 0 if there is no limit.
  uint64_t DeviceMemoryFor(std::string_view name) const;
  // Returns the host memory that the process may still take; 0: unknown.
  uint64_t HostMemory() const { return probes_.host(); }
  // Returns the device and host memory that a job of `model`, called `name`, may use now.
  PlanLimits LimitsFor(std::string_view name, const LoadedModel& model) const;

  // Records the device memory of each component of each model.
  void RecordMemory(Recorder& recorder) const;

  // Moves all weights off the device, except those that must stay. CANCELLED after a stop request;
  // RESOURCE_EXHAUSTED (HOST_MEMORY_EXHAUSTED) if the host has no room for them.
  absl::Status ClearDevice(const std::stop_token& stop);
  // Makes room for a job: moves weights of other models off the device until the job fits, and
  // weights of its own model that the plan does not keep there. Fails as ClearDevice does.
  absl::Status PrepareDevice(const GenerationPlan& plan, const LoadedModel& model,
                             const std::stop_token& stop);

  // Exists while a job runs: host memory that the job uses only temporarily counts as free for jobs
  // that are planned meanwhile.
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
  // Returns the device bytes that all models together may use now: the limit at the start, or less
  // if other processes took some since; 0: no limit.
  uint64_t DeviceMemory() const;
  // Returns the bytes of weights that all models hold in host memory.
  uint64_t HeldOnHost() const;
  // RESOURCE_EXHAUSTED if the host has too little memory to park `bytes` of weights.
  absl::Status CheckRoomToPark(uint64_t bytes) const;
  // Moves weights of models other than `model` off the device until `needed_bytes` fit. They are
  // copied to host memory as long as that leaves `host_bytes` for the job. After that, weights that
  // no configured policy keeps in host memory are dropped, and read again by their next job.
  absl::Status ParkOthers(const LoadedModel* model, uint64_t needed_bytes, uint64_t host_bytes,
                          const std::stop_token& stop);

  const LoadedModels& models_;
  const c10::Device device_;
  const PlanLimits limits_;
  const MemoryProbes probes_;

  mutable absl::Mutex mutex_;
  // Host memory before the running job: what was available, and what the models held.
  std::optional<uint64_t> host_total_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace wan
