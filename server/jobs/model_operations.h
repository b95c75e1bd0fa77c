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
#include "server/conversion/convert.h"
#include "server/jobs/device_groups.h"
#include "server/jobs/lora_folders.h"
#include "server/jobs/model_table.h"
#include "server/store/file_digests.h"
#include "server/watch/listener.h"
#include "wan/v1/model_management.pb.h"

namespace wan::server {

// Maximum number of shapes in one WarmupModel call; each shape may take as long as a job.
inline constexpr size_t kMaxWarmupShapes = 16;

// Thread-safe. Names have the forms that ModelTable accepts. A load, an unload or a warm-up posts a
// task to every serving device group that may have the model, and ends when the last of these tasks
// has ended.
//
// The functions with a `done` never block. The engine works on the executors' threads, between
// jobs; on these threads `done` is called with the model or an error. If there is nothing to do,
// `done` is called on the caller's thread before the call returns. When the server stops, every
// task that has not ended gets UNAVAILABLE (SERVER_STOPPING).
class ModelOperations {
 public:
  using Done = ModelTable::Done;

  // All members must stay alive until the executors have stopped.
  struct Parts {
    ModelTable& table;
    DeviceGroups& groups;
    Clock& clock;
    // Whether loading a model includes a warm-up. A model whose warm-up fails becomes FAILED.
    bool warm_up_on_load = true;
    // The shapes of the warm-up after a load; empty: the small shape that the engine chooses.
    std::vector<VideoShape> warm_up_shapes;
    std::vector<SinkFactory> sinks;
    std::vector<StateListener*> listeners;
    // ModelOperations calls on_device_lost on the executor's thread when a task has failed because
    // the device was lost.
    std::function<void(int group, const absl::Status&)> on_device_lost;
    // The folders below which the paths must lie that callers of Load name. Paths that the settings
    // name (ModelTable::Add) may lie anywhere.
    ModelRoots roots;
    // Every load of a model also registers the LoRAs that lie in these folders.
    LoraFolders folders;
    // Computes the digests of the files of every loaded model; paused during loads.
    FileDigests& digests;
  };
  explicit ModelOperations(Parts parts) : parts_(std::move(parts)), table_(parts_.table) {}

  // Loads a model and, if warm_up_on_load is set, warms it up. If `spec.path` is empty, the model's
  // known path is used and, if `spec.loras` is empty too, its known LoRAs. If the model is already
  // loaded with this path and these LoRAs, only the groups that lack the model load it. If such a
  // load is running, `done` waits for that load. If the model is loaded with this path but other
  // LoRAs, replaces only the LoRAs, even if links in the path lead elsewhere by now. If the engine
  // of any group refuses the LoRA files, the model stays READY with the old LoRAs in all groups,
  // and only the call and its operation have the error. If the call only adds LoRAs, the model
  // stays READY during the load, and jobs may use the model. `edits` changes the known LoRAs.
  //
  // Errors: FAILED_PRECONDITION (MODEL_LOADED) if the name is loaded with another path,
  // (MODEL_LOADING) if it is being loaded with another path or other LoRAs, (MODEL_IN_USE) if jobs
  // need it and its LoRAs would change; NOT_FOUND for an unknown name without a path;
  // INVALID_ARGUMENT as in ModelTable::Add, if a path does not lie below the roots, or if no group
  // may have a model of this name; else the engine's error, which also becomes the model's `error`.
  // A model that was loaded before keeps its known path and LoRAs if a load fails.
  void Load(ModelSpec spec, const Done& done, const LoraEdits& edits = {});
  // Begins the load and returns at once: the model is LOADING and has the new operation, unless
  // there is nothing to do. If the load fails, the operation and the model have the error in their
  // field `error`.
  absl::StatusOr<wan::v1::Model> BeginLoad(ModelSpec spec, const LoraEdits& edits = {});
  // If ModelTable::MayLoadMissing still holds, loads the model in a group that lacks it. Returns
  // before the load has ended. If the load fails, the model stays READY in the groups that have it.
  void LoadMissing(const std::string& name, int group);

  // Frees a model's memory and makes it UNLOADED. Returns OK if the model is not loaded. Fails with
  // FAILED_PRECONDITION if jobs for it wait or run (MODEL_IN_USE), or if it is being loaded
  // (MODEL_LOADING).
  void Unload(std::string_view name, const Done& done);

  // Runs the model once with each shape, on all groups that have it. Plans the shapes like jobs
  // before it returns; fails with INVALID_ARGUMENT and the violations of all shapes, or if there
  // are more than kMaxWarmupShapes. Fails with FAILED_PRECONDITION unless the model is READY. Fails
  // with CANCELLED if `caller` requests a stop; a running warm-up then ends as quickly as a
  // cancelled job. If a result is not finite, fails with DATA_LOSS (IsNotFinite), and the model
  // becomes FAILED in that group.
  void Warmup(std::string_view name, std::vector<VideoShape> shapes, const Done& done,
              std::stop_token caller = {});
  // Begins the warm-up and returns at once, with the model and its new operation.
  absl::StatusOr<wan::v1::Model> BeginWarmup(std::string_view name, std::vector<VideoShape> shapes);

  // Ends the running loads and warm-ups, and those that begin later, with UNAVAILABLE
  // (SERVER_STOPPING). Returns before these loads and warm-ups have ended. Later calls do nothing.
  void Stop();
  // Reverts Stop: the loads that Stop has ended begin again. Returns before these loads have ended.
  // Does nothing if Stop was not called.
  void Resume();

 private:
  // Posts a load to the executors of the groups.
  void PostLoad(const ModelSpec& spec, const std::vector<int>& groups);
  // Loads the model in one group, on its executor's thread.
  absl::Status RunLoad(const ModelSpec& asked, int group);
  // Whether the model is loaded and warm. A model that has only got other LoRAs counts as warm.
  bool IsWarm(const std::string& name, int group) const;
  absl::Status WarmUpLoaded(const std::string& name, int group, const std::stop_token& stop);
  // Records that the load in one group has ended; if it was the last group, calls the waiting
  // `done`.
  void FinishLoad(const std::string& name, int group, const absl::Status& ended,
                  absl::Duration taken);
  // If Stop has ended the model's latest load and Resume was called since, loads the model again.
  void LoadInterrupted(const std::string& name);
  // Queues the model's files for hashing, in the versions that the group's engine has read.
  void WantDigests(const std::string& name, int group) const;
  // Checks a warm-up and posts it to the executors, or returns the error. `done` may be null, if
  // nobody waits.
  absl::Status PostWarmup(const std::string& name, std::vector<VideoShape> shapes, const Done& done,
                          std::stop_token caller);
  absl::Status RunWarmup(const std::string& name, int group, const std::vector<VideoShape>& shapes,
                         const std::stop_token& caller);
  // Makes a model that was READY in the group FAILED there and frees its memory, because the
  // model's jobs would fail with `error` as well. Call Discard on the executor's thread.
  void Discard(const std::string& name, int group, const absl::Status& error);
  // Calls on_device_lost if `status` says that the group's device was lost.
  void Hear(const absl::Status& status, int group) const;
  std::stop_token stop_token() const;

  const Parts parts_;
  ModelTable& table_;
  mutable absl::Mutex mutex_;
  std::stop_source stopping_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace wan::server
