// Loads, unloads and warms up models: the engine's part of what ModelTable knows.
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

// Most shapes of one WarmupModel call: each may take as long as a job.
inline constexpr size_t kMaxWarmupShapes = 16;

// Thread-safe. Names as for ModelTable. A load, an unload and a warm-up act on every device group
// that may have the model and serves, in each as a task of its own; they have ended when the last
// of these has.
//
// The calls with a `done` never block. The engine's work runs on the executors' threads, between
// jobs, and `done` is called there with the model as it is then, or with an error. If there is
// nothing to do, `done` is called on the caller's thread before the call returns. When the server
// stops, every task that has not ended gets UNAVAILABLE (SERVER_STOPPING).
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
    // Where paths may lie that Load names, unless they are those that ModelTable::Add named.
    ModelRoots roots;
    // Told of the files of every model that was loaded, and paused while one is being loaded.
    FileDigests& digests;
  };
  explicit ModelOperations(Parts parts) : parts_(std::move(parts)), table_(parts_.table) {}

  // Loads a model and, if the parts say so, warms it up. If `spec.path` is empty, the model's known
  // path is used and, if `spec.loras` is empty too, its known LoRAs. If the model is loaded with
  // the same path and LoRAs, nothing happens, except in groups that lack it; if it is being loaded
  // with them, `done` waits for that. If it is loaded with the same path and other LoRAs, it is
  // loaded again with these; if the engine refuses their files, the model stays READY as it was,
  // and only the call and its operation have the error.
  //
  // Errors: FAILED_PRECONDITION (MODEL_LOADED) if the name is loaded with another path,
  // (MODEL_LOADING) if it is being loaded with another path or other LoRAs, (MODEL_IN_USE) if it is
  // to get other LoRAs while jobs need it; NOT_FOUND for an unknown name without a path;
  // INVALID_ARGUMENT as in ModelTable::Add, if a path does not lie below the roots, or if no group
  // may have a model of this name; else the engine's error, which also becomes the model's `error`.
  // A failed load changes neither the known path nor the known LoRAs of a model that was loaded
  // before.
  void Load(ModelSpec spec, const Done& done);
  // Does the same without waiting. Returns the model as it is now: LOADING and with the new
  // operation, unless there is nothing to do. The operation's `error`, and the model's, say how it
  // has ended.
  absl::StatusOr<wan::v1::Model> BeginLoad(ModelSpec spec);
  // Loads the model in a group that lacks it, if ModelTable::MayLoadMissing still holds. Does not
  // wait; after a failure the model stays READY where it is.
  void LoadMissing(const std::string& name, int group);

  // Frees a model's memory and makes it UNLOADED; that a model is not loaded is not an error.
  // FAILED_PRECONDITION if jobs for it wait or run (MODEL_IN_USE), or if it is being loaded
  // (MODEL_LOADING).
  void Unload(std::string_view name, const Done& done);

  // Runs the model once with each shape. The shapes are planned like jobs before this returns:
  // INVALID_ARGUMENT with the violations of all of them, or if there are more than
  // kMaxWarmupShapes. FAILED_PRECONDITION unless the model is READY. CANCELLED when `caller` asks
  // for a stop; a warm-up that runs ends as quickly as a cancelled job. DATA_LOSS (IsNotFinite) if
  // a result is not finite: the model becomes FAILED in that group.
  void Warmup(std::string_view name, std::vector<VideoShape> shapes, const Done& done,
              std::stop_token caller = {});
  // Does the same without waiting. Returns the model as it is now, with the new operation.
  absl::StatusOr<wan::v1::Model> BeginWarmup(std::string_view name, std::vector<VideoShape> shapes);

  // Ends the load or warm-up that runs, and those that begin later, with UNAVAILABLE
  // (SERVER_STOPPING). Does not wait. Idempotent.
  void Stop();
  // Takes Stop back: loads that it has ended begin anew. Does not wait. Idempotent.
  void Resume();

 private:
  // Posts a load to the executors of the groups.
  void PostLoad(const ModelSpec& spec, const std::vector<int>& groups);
  // The load in one group, on its executor's thread.
  absl::Status RunLoad(const ModelSpec& asked, int group);
  absl::Status WarmUpLoaded(const std::string& name, int group, const std::stop_token& stop);
  // The load in one group has ended.
  void FinishLoad(const std::string& name, int group, const absl::Status& ended,
                  absl::Duration taken);
  // Loads the model anew if Stop has ended its latest load, and Resume was called since.
  void LoadInterrupted(const std::string& name);
  // Queues the digests of the model's files, in the versions that the group's engine has read.
  void WantDigests(const std::string& name, int group) const;
  // Checks a warm-up and posts it to the executors, or returns why it cannot be done. `done` may be
  // null.
  absl::Status PostWarmup(const std::string& name, std::vector<VideoShape> shapes, const Done& done,
                          std::stop_token caller);
  absl::Status RunWarmup(const std::string& name, int group, const std::vector<VideoShape>& shapes,
                         const std::stop_token& caller);
  // The model that was READY in the group has given `error`, which its jobs would give as well: it
  // becomes FAILED there and gives its memory back. On the executor's thread.
  void Discard(const std::string& name, int group, const absl::Status& error);
  // Calls on_device_lost if a task failed because of that.
  void Hear(const absl::Status& status, int group) const;
  std::stop_token stop_token() const;

  const Parts parts_;
  ModelTable& table_;
  mutable absl::Mutex mutex_;
  std::stop_source stopping_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace wan::server
