// Which models there are, in which state, and who needs them.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "engine/api/clock.h"
#include "engine/api/engine.h"
#include "server/jobs/executor.h"
#include "server/watch/listener.h"
#include "wan/v1/model_management.pb.h"

namespace wan::server {

// Each shape of a warm-up may take as long as a job.
inline constexpr size_t kMaxWarmupShapes = 16;

struct ModelRegistryOptions {
  // Warm up as part of loading. A model that cannot be warmed up is FAILED.
  bool warm_up_on_load = true;
  // What that warm-up runs; empty: the engine's small shape.
  std::vector<VideoShape> warm_up_shapes;
  std::vector<SinkFactory> sinks;
  std::vector<StateListener*> listeners;
  // Hears of a task that ended because the device is lost; called on the executor's thread.
  std::function<void(const absl::Status&)> on_device_lost = [](const absl::Status&) {};
};

// Thread-safe. Names are bare ("ti2v-5b") or resource names ("models/ti2v-5b"). The calls with a
// `done` never block: the engine's work runs on the executor's thread, between jobs, and `done` is
// called there (or at once, on the caller's thread, when there is nothing to do) with the model as
// it is then. A task that a stopping server drops ends with UNAVAILABLE.
class ModelRegistry {
 public:
  using Done = std::function<void(absl::StatusOr<wan::v1::Model>)>;

  // All must outlive the registry's use by the executor.
  ModelRegistry(Engine& engine, Executor& executor, Clock& clock, ModelRegistryOptions options);

  // Makes a name known as UNLOADED. ALREADY_EXISTS if it is known; INVALID_ARGUMENT unless the name
  // and its LoRAs' are 1 to 63 letters, digits, '.', '_' and '-' and no path is empty.
  absl::Status Add(const ModelSpec& spec);

  // Makes resident and warm. An empty path means the known one, and without LoRAs the known ones,
  // too. A resident model of the same path and LoRAs is left as it is; one on its way is waited
  // for. FAILED_PRECONDITION (MODEL_LOADED, MODEL_LOADING) if the name is resident or on its way
  // with others; NOT_FOUND for an unknown name without a path; INVALID_ARGUMENT for a bad name;
  // else the engine's error, which the model's state keeps.
  void Load(ModelSpec spec, const Done& done);

  // FAILED_PRECONDITION (MODEL_IN_USE, MODEL_LOADING) while jobs for it wait or run, or while it is
  // on its way. An unloaded or failed model becomes or stays UNLOADED.
  void Unload(std::string_view name, const Done& done);

  // Every shape is planned as a job's would be, at once, before it waits for its turn:
  // INVALID_ARGUMENT with the violations of all shapes, or for more than kMaxWarmupShapes of them.
  // FAILED_PRECONDITION unless the model is READY. CANCELLED when `caller` asks for a stop, at once
  // also while the warm-up runs.
  void Warmup(std::string_view name, std::vector<VideoShape> shapes, const Done& done,
              std::stop_token caller = {});

  // Ends the load or warm-up that runs, and those that begin later, with UNAVAILABLE
  // (SERVER_STOPPING). Idempotent; does not wait.
  void Stop();

  // NOT_FOUND (MODEL_NOT_FOUND) for an unknown name.
  absl::StatusOr<wan::v1::Model> Get(std::string_view name) const;
  // By name.
  std::vector<wan::v1::Model> List() const;

  bool IsReady(std::string_view name) const;

  // A job for the model exists until RemoveJob. For new jobs: refused with INVALID_ARGUMENT (a
  // violation of `model` that lists the known ones), FAILED_PRECONDITION (MODEL_NOT_READY) or
  // UNAVAILABLE (MODEL_LOADING) unless the model is READY.
  absl::Status AddJob(std::string_view name);
  // For jobs that were accepted by an earlier process: they wait until the model is loaded.
  void AddRecoveredJob(std::string_view name);
  void RemoveJob(std::string_view name);

 private:
  struct Entry {
    std::string path;
    std::vector<LoraSource> loras;
    wan::v1::ModelState state = wan::v1::MODEL_STATE_UNLOADED;
    absl::Status error;
    std::vector<Done> load_waiters;
  };
  // Nothing where the executor must work first.
  using Answer = std::optional<absl::StatusOr<wan::v1::Model>>;

  // Fills in what is known of the spec. Without an answer `done` waits for the load, which the
  // caller has to `begin` unless it is on its way.
  Answer JoinLoad(ModelSpec& spec, const Done& done, bool* begin);
  absl::Status RunLoad(const ModelSpec& spec);
  // Tells options_.on_device_lost if that is why a task failed.
  void Hear(const absl::Status& status) const;
  absl::Status RunWarmup(const std::string& name, const std::vector<VideoShape>& shapes,
                         const std::stop_token& caller);
  // What a stopping server's tasks end with, instead of the engine's CANCELLED.
  absl::Status OrStopping(absl::Status status) const;
  void FinishLoad(const std::string& name, const absl::Status& status);
  Answer BeginUnload(const std::string& name);
  absl::Status CheckReady(const std::string& name) const;
  void SetState(const std::string& name, Entry& entry, wan::v1::ModelState state,
                const absl::Status& error) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  wan::v1::Model Describe(const std::string& name, const Entry& entry) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Engine& engine_;
  Executor& executor_;
  Clock& clock_;
  const ModelRegistryOptions options_;
  std::stop_source stopping_;
  mutable absl::Mutex mutex_;
  std::map<std::string, Entry, std::less<>> entries_ ABSL_GUARDED_BY(mutex_);
  // Apart from entries_: jobs of an earlier process may name a model that is not known any more.
  std::map<std::string, int, std::less<>> jobs_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace wan::server
