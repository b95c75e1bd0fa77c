// Decides between models: whose weights are on the device, and how much memory a job may use.
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

// Returns memory that this process may use, in bytes; 0 if that is unknown. Called from any thread,
// also while a job runs.
using MemoryProbe = std::function<uint64_t()>;

// Returns what the control group leaves, or what the machine has left if that is less.
uint64_t AvailableHostMemory();

// Functions that return the memory available now, because other processes take and return some
// while the server runs.
struct MemoryProbes {
  // Returns the host memory that the process may still take.
  MemoryProbe host = AvailableHostMemory;
  // Returns the device memory that weights and activations of the process have or may still take.
  // Empty: only the limit of the start is known.
  MemoryProbe device = nullptr;
};

// Any thread may call the const methods at any time; the others are for the thread that computes.
class MemoryArbiter {
 public:
  // `models` must outlive the object. `limits` are those of the start.
  MemoryArbiter(const LoadedModels& models, c10::Device device, const PlanLimits& limits,
                MemoryProbes probes);

  // Returns the device memory that a model of this name and its jobs may hold: all that the process
  // may use now, but what other models never free. 0 if there is no limit.
  uint64_t DeviceMemoryFor(std::string_view name) const;
  // Returns the host memory that the process may still take; 0: unknown.
  uint64_t HostMemory() const { return probes_.host(); }
  // Returns the memory that a job of `model`, whose name is `name`, may use now on device and host.
  PlanLimits LimitsFor(std::string_view name, const LoadedModel& model) const;

  // Records the device memory that each component of each model holds now.
  void RecordMemory(Recorder& recorder) const;

  // Moves all weights off the device that may leave it. CANCELLED after a stop request;
  // RESOURCE_EXHAUSTED (HOST_MEMORY_EXHAUSTED) if the host has no room for them.
  absl::Status ClearDevice(const std::stop_token& stop);
  // Makes room for a job: moves weights of other models off the device until the job fits, and
  // those of its own model that the plan does not keep there all the time. Statuses as above.
  absl::Status PrepareDevice(const GenerationPlan& plan, const LoadedModel& model,
                             const std::stop_token& stop);

  // Lives as long as a job runs: what the job takes of the host for a while counts as free for jobs
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
  // The host's memory before the running job.
  struct HostBefore {
    uint64_t available = 0;
    uint64_t held = 0;
  };

  // Returns the bytes that all models together may hold of the device now: the limit of the start,
  // or less if other processes have taken some since; 0 without a limit.
  uint64_t DeviceMemory() const;
  // Returns the bytes of weights that all models hold in host memory.
  uint64_t HeldOnHost() const;
  // RESOURCE_EXHAUSTED if parking `bytes` of weights would take more host memory than there is.
  absl::Status CheckRoomToPark(uint64_t bytes) const;
  // Moves weights of models other than `model` off the device until `needed_bytes` fit. They get
  // copies in host memory as long as `host_bytes` are left for the job; after that, weights that no
  // configured policy keeps there are dropped, and their next job reads them again.
  absl::Status ParkOthers(const LoadedModel* model, uint64_t needed_bytes, uint64_t host_bytes,
                          const std::stop_token& stop);

  const LoadedModels& models_;
  const c10::Device device_;
  const PlanLimits limits_;
  const MemoryProbes probes_;

  mutable absl::Mutex mutex_;
  std::optional<HostBefore> host_before_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace wan
