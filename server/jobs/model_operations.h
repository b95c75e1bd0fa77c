// Loads, unloads and warms up models in the engines, and records the results in ModelTable.
#pragma once

#include <cstddef>
#include <functional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "engine/api/clock.h"
#include "engine/api/engine.h"
#include "server/auth/model_roots.h"
#include "server/jobs/device_groups.h"
#include "server/jobs/model_table.h"
#include "server/store/file_digests.h"
#include "server/watch/listener.h"
#include "wan/v1/model_management.pb.h"

namespace wan::server {

// Most shapes of one WarmupModel call; each may take as long as a job.
inline constexpr size_t kMaxWarmupShapes = 16;

// Thread-safe. Names have the forms that ModelTable accepts. A load, an unload or a warm-up posts a
// task to every serving device group that may have the model, and ends when the last of these tasks
// has ended.
//
// The calls with a `done` never block. The engine works on the executors' threads, between jobs;
// `done` is called there with the model or an error. If there is nothing to do, `done` is called on
// the caller's thread before the call returns. When the server stops, every task that has not ended
// gets UNAVAILABLE (SERVER_STOPPING).
class ModelOperations {
 public:
  using Done = ModelTable::Done;

  // All must stay alive until the executors have stopped.
  struct Parts {
    ModelTable& table;
    DeviceGroups& groups;
    Clock& clock;
    // Whether loading includes a warm-up. A model whose warm-up fails becomes FAILED.
    bool warm_up_on_load = true;
    // The shapes of that warm-up; empty: the engine's own small shape.
    std::vector<VideoShape> warm_up_shapes;
    std::vector<SinkFactory> sinks;
    std::vector<StateListener*> listeners;
    // Called on the executor's thread when a task has failed because of a lost device.
    std::function<void(int group, const absl::Status&)> on_device_lost;
    // The folders below which the paths of a Load must lie. Paths that the settings name
    // (ModelTable::Add) are not restricted.
    ModelRoots roots;
    // Computes the digests of the files of every loaded model; paused during loads.
    FileDigests& digests;
  };
  explicit ModelOperations(Parts parts) : parts_(std::move(parts)), table_(parts_.table) {}

  // Loads a model and, if the parts say so, warms it up. If `spec.path` is empty, the model's known
  // path is used and, if `spec.loras` is empty too, its known LoRAs. If the model is loaded with
  // the same path and LoRAs, only groups that lack it load it; if it is being loaded with them,
  // `done` waits for that load. If it is loaded with the same path and other LoRAs, it is loaded
  // again with the new LoRAs; if the engine refuses their files, the model stays READY with the old
  // ones, and only the call and its operation have the error.
  //
  // Errors: FAILED_PRECONDITION (MODEL_LOADED) if the name is loaded with another path,
  // (MODEL_LOADING) if it is being loaded with another path or other LoRAs, (MODEL_IN_USE) if jobs
  // need it and its LoRAs would change; NOT_FOUND for an unknown name without a path;
  // INVALID_ARGUMENT as in ModelTable::Add, if a path does not lie below the roots, or if no group
  // may have a model of this name; else the engine's error, which also becomes the model's `error`.
  // A model that was loaded before keeps its known path and LoRAs if a load fails.
  void Load(ModelSpec spec, const Done& done);
  // Begins the load and returns at once: the model is LOADING and has the new operation, unless
  // there is nothing to do. A failure is in the `error` of the operation and of the model.
  absl::StatusOr<wan::v1::Model> BeginLoad(ModelSpec spec);
  // Loads the model in a group that lacks it, if ModelTable::MayLoadMissing still holds. Returns at
  // once. If the load fails, the model stays READY in the groups that have it.
  void LoadMissing(const std::string& name, int group);

  // Frees a model's memory and makes it UNLOADED. OK if the model is not loaded.
  // FAILED_PRECONDITION if jobs for it wait or run (MODEL_IN_USE), or if it is being loaded
  // (MODEL_LOADING).
  void Unload(std::string_view name, const Done& done);

  // Runs the model once with each shape. The shapes are planned like jobs before this returns:
  // INVALID_ARGUMENT with the violations of all of them, or if there are more than
  // kMaxWarmupShapes. FAILED_PRECONDITION unless the model is READY. CANCELLED if `caller` requests
  // a stop; a running warm-up then ends as quickly as a cancelled job. DATA_LOSS (IsNotFinite) if a
  // result is not finite: the model becomes FAILED in that group.
  void Warmup(std::string_view name, std::vector<VideoShape> shapes, const Done& done,
              std::stop_token caller = {});
  // Begins the warm-up and returns at once, with the model and its new operation.
  absl::StatusOr<wan::v1::Model> BeginWarmup(std::string_view name, std::vector<VideoShape> shapes);

  // Ends running loads and warm-ups, and those that begin later, with UNAVAILABLE
  // (SERVER_STOPPING). Returns at once. Idempotent.
  void Stop();
  // Reverts Stop: loads that it has ended begin again. Returns at once. Idempotent.
  void Resume();

 private:
  // Posts a load to the executors of the groups.
  void PostLoad(const ModelSpec& spec, const std::vector<int>& groups);
  // Loads the model in one group, on its executor's thread.
  absl::Status RunLoad(const ModelSpec& asked, int group);
  absl::Status WarmUpLoaded(const std::string& name, int group, const std::stop_token& stop);
  // Records that the load in one group has ended, and calls the waiting `done` if it was the last.
  void FinishLoad(const std::string& name, int group, const absl::Status& ended,
                  absl::Duration taken);
  // Loads the model again if Stop has ended its latest load and Resume was called since.
  void LoadInterrupted(const std::string& name);
  // Queues the model's files for hashing, in the versions that the group's engine has read.
  void WantDigests(const std::string& name, int group) const;
  // Checks a warm-up and posts it to the executors, or returns the error. `done` may be null.
  absl::Status PostWarmup(const std::string& name, std::vector<VideoShape> shapes, const Done& done,
                          std::stop_token caller);
  absl::Status RunWarmup(const std::string& name, int group, const std::vector<VideoShape>& shapes,
                         const std::stop_token& caller);
  // Makes a model that was READY in the group FAILED there and frees its memory, because its jobs
  // would fail with `error` as well. Call it on the executor's thread.
  void Discard(const std::string& name, int group, const absl::Status& error);
  // Calls on_device_lost if `status` says that the device was lost.
  void Hear(const absl::Status& status, int group) const;
  std::stop_token stop_token() const;

  const Parts parts_;
  ModelTable& table_;
  mutable absl::Mutex mutex_;
  std::stop_source stopping_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace wan::server
