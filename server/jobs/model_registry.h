// Knows the models, their states, and how many jobs need each of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
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
#include "absl/time/time.h"
#include "engine/api/clock.h"
#include "engine/api/engine.h"
#include "server/auth/model_roots.h"
#include "server/jobs/device_groups.h"
#include "server/store/file_digests.h"
#include "server/watch/listener.h"
#include "wan/v1/model_management.pb.h"

namespace wan::server {

// Most shapes of one WarmupModel call: each may take as long as a job.
inline constexpr size_t kMaxWarmupShapes = 16;

// Most models that are remembered though they are neither configured nor loaded: those that were
// unloaded, and the operations of those whose loading failed. The oldest are forgotten.
inline constexpr size_t kMaxIdleModels = 32;

struct ModelRegistryOptions {
  // Whether loading includes a warm-up. A model whose warm-up fails becomes FAILED.
  bool warm_up_on_load = true;
  // The shapes of that warm-up; empty: the engine's own small shape.
  std::vector<VideoShape> warm_up_shapes;
  std::vector<SinkFactory> sinks;
  std::vector<StateListener*> listeners;
  // Called on the executor's thread when a task has failed because the device is lost.
  std::function<void(int group, const absl::Status&)> on_device_lost = [](int,
                                                                          const absl::Status&) {};
  // Where paths may lie that Load names, unless they are those that Add named.
  ModelRoots roots;
  // Told of the files of every model that was loaded, and paused while one is being loaded. Null:
  // nobody is.
  FileDigests* digests = nullptr;
};

// Thread-safe. A name may be bare ("ti2v-5b") or a resource name ("models/ti2v-5b").
//
// A model may be resident in several device groups. A load, an unload and a warm-up act on every
// group that may have the model and serves, in each as a task of its own; they have ended when the
// last of these has. The model is READY while it is in any of these groups; a load fails if it is
// in none then.
//
// The calls with a `done` never block. The engine's work runs on the executors' threads, between
// jobs, and `done` is called there with the model as it is then, or with an error. If there is
// nothing to do, `done` is called on the caller's thread before the call returns. When the server
// stops, every task that has not ended gets UNAVAILABLE (SERVER_STOPPING).
//
// A name that Load brought and that was never loaded is not known any more when its loading has
// failed: the call, the operation and GetEnded tell the error.
class ModelRegistry {
 public:
  using Done = std::function<void(absl::StatusOr<wan::v1::Model>)>;

  // All arguments must stay alive until the executors have stopped.
  ModelRegistry(DeviceGroups& groups, Clock& clock, ModelRegistryOptions options);

  // Adds a model in the state UNLOADED. ALREADY_EXISTS if the name is taken; INVALID_ARGUMENT if
  // the name or a LoRA's is not 1 to 63 letters, digits, '.', '_' and '-', if a path does not have
  // 1 to kMaxPathBytes bytes or has a NUL among them, or if there are more than kMaxLorasOfModel
  // LoRAs.
  absl::Status Add(const ModelSpec& given);

  // Loads a model and, if the options say so, warms it up. If `spec.path` is empty, the model's
  // known path is used and, if `spec.loras` is empty too, its known LoRAs. If the model is loaded
  // with the same path and LoRAs, nothing happens, except in groups that lack it; if it is being
  // loaded with them, `done` waits for that. If it is loaded with the same path and other LoRAs, it
  // is loaded again with these; if the engine refuses their files, the model stays READY as it was,
  // and only the call and its operation have the error.
  //
  // Errors: FAILED_PRECONDITION (MODEL_LOADED) if the name is loaded with another path,
  // (MODEL_LOADING) if it is being loaded with another path or other LoRAs, (MODEL_IN_USE) if it is
  // to get other LoRAs while jobs need it; NOT_FOUND for an unknown name without a path;
  // INVALID_ARGUMENT as in Add, if a path does not lie below options.roots, or if no group may have
  // a model of this name; else the engine's error, which also becomes the model's `error`. A failed
  // load changes neither the known path nor the known LoRAs of a model that was loaded before.
  void Load(ModelSpec spec, const Done& done);

  // Does the same without waiting. Returns the model as it is now: LOADING and with the new
  // operation, unless there is nothing to do. The operation's `error`, and the model's, say how it
  // has ended.
  absl::StatusOr<wan::v1::Model> BeginLoad(ModelSpec spec);

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

  // NOT_FOUND (MODEL_NOT_FOUND) for an unknown name; the message has the error of its last load.
  absl::StatusOr<wan::v1::Model> Get(std::string_view name) const;
  // As Get, and for a name that is not known because its loading failed the model as it was then:
  // FAILED, with its operations. For those who watch an operation.
  absl::StatusOr<wan::v1::Model> GetEnded(std::string_view name) const;
  // Returns all models, ordered by name.
  std::vector<wan::v1::Model> List() const;

  // Returns one page of them. INVALID_ARGUMENT if the page size or the token is wrong. A page ends
  // early when it has grown to 3 MiB.
  absl::StatusOr<wan::v1::ListModelsResponse> List(const wan::v1::ListModelsRequest& request) const;

  // Calls `changed` with the bare name of a model whenever that model may have changed, until
  // RemoveWatcher. The calls come from any thread with the registry's lock held: `changed` must be
  // quick, and of the registry it may call only RemoveWatcher. Returns the watcher's number.
  int64_t AddWatcher(std::function<void(const std::string& name)> changed);
  // A call of `changed` that has started may still run when this returns.
  void RemoveWatcher(int64_t watcher);

  // Whether a group may have the model, lacks it while another one with the same kind of device has
  // it, and may have room for it now: no load of the model runs, and if the group's last one failed
  // for lack of memory, enough time has passed since, or a model was unloaded there. A load that
  // failed for another reason is not tried again.
  bool MayLoadMissing(std::string_view name, int group) const;
  // Loads the model in that group, if MayLoadMissing still holds. Does not wait; after a failure
  // the model stays READY where it is.
  void LoadMissing(const std::string& name, int group);

  // Call it when a group has left and others serve on: what models are in it no longer counts.
  void OnGroupLeft();

  bool IsReady(std::string_view name) const;
  // Whether the model is READY in this group.
  bool IsReadyIn(std::string_view name, int group) const;
  // The groups in which it is READY; of those that serve, unless none does.
  std::vector<int> ReadyIn(std::string_view name) const;
  // Nothing for an unknown name.
  std::optional<wan::v1::ModelState> StateOf(std::string_view name) const;

  // How long the model's last load, warm-up included, took; nothing before the first.
  std::optional<absl::Duration> LoadTime(std::string_view name) const;
  // Returns the Model_Initialization of the last load in the group that went well in this process.
  std::optional<wan::v1::StageReport> LoadReport(std::string_view name, int group) const;

  // Counts a new job for the model, which cannot be unloaded until RemoveJob. Returns an error and
  // counts nothing unless the model is READY: INVALID_ARGUMENT (a violation of `model` that lists
  // the known names), UNAVAILABLE (MODEL_LOADING) or FAILED_PRECONDITION (MODEL_NOT_READY).
  absl::Status AddJob(std::string_view name);
  // Counts a job that an earlier process accepted. It waits until the model is loaded, even if the
  // name is not known now.
  void AddRecoveredJob(std::string_view name);
  void RemoveJob(std::string_view name);

 private:
  // A model in one device group.
  struct Place {
    wan::v1::ModelState state = wan::v1::MODEL_STATE_UNLOADED;
    absl::Status error;
    std::optional<wan::v1::StageReport> load_report;  // of the last load that went well
    // Loads that failed since the last one that went well, and when LoadMissing may try another.
    int failed_loads = 0;
    bool kept = false;  // the load that was to replace what is here has failed
    absl::Time retry = absl::InfinitePast();  // of the steady clock
  };
  struct Entry {
    // What Add was given; nothing for a model that callers named.
    std::optional<ModelSpec> configured;
    std::string path;
    std::vector<LoraSource> loras;
    std::vector<Place> places;  // by group
    // What follows from `places`.
    wan::v1::ModelState state = wan::v1::MODEL_STATE_UNLOADED;
    absl::Status error;
    int loading = 0;         // tasks of the load that have not ended
    int loaded = 0;          // those that have ended well
    bool replacing = false;  // the load gives a loaded model other LoRAs
    // What the model had when it was last loaded; before, what Add was given.
    std::optional<ModelSpec> sound;
    bool interrupted = false;  // Stop has ended the latest load
    absl::Status load_error;   // of the first of them that failed
    std::vector<Done> load_waiters;
    // Oldest first.
    std::vector<wan::v1::ModelOperation> operations;
    std::optional<absl::Duration> load_time;  // of the last load that went well
    std::string load_operation;               // the name of the operation that loads the model now
  };
  // Nullopt: the executor must work first.
  using Answer = std::optional<absl::StatusOr<wan::v1::Model>>;

  // A task for several groups: how many have not ended, and the first error.
  struct Shared {
    int left = 0;
    absl::Status error;
  };

  // The entry of this name, which is made if it is missing.
  Entry& EntryOf(const std::string& name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The entry of a known name, or null.
  const Entry* FindKnown(std::string_view name) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The error for a name that is not known, with that of its last load.
  absl::Status NotKnown(const std::string& name) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The groups that may have the model and serve; if none serves, all that may have it.
  std::vector<int> PlacesOf(std::string_view name) const;
  // Those in which it is READY.
  std::vector<int> ReadyPlaces(const std::string& name, const Entry& entry) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static void SetPlace(Entry& entry, int group, wan::v1::ModelState state,
                       const absl::Status& error);
  // Makes the model's state what its places say.
  void Refresh(const std::string& name, Entry& entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Fills in what `spec` leaves to the known model. If it returns no answer, `done` (unless it is
  // null) waits for the load; the caller must start it in the groups of `begin` with PostLoad.
  Answer JoinLoad(ModelSpec& spec, const Done& done, std::vector<int>* begin);
  // Posts a load to the executors of the groups.
  void PostLoad(const ModelSpec& spec, const std::vector<int>& groups);
  // Checks a warm-up and posts it to the executors, or returns why it cannot be done. `done` may be
  // null.
  absl::Status PostWarmup(const std::string& name, std::vector<VideoShape> shapes, const Done& done,
                          std::stop_token caller);
  bool MayLoadMissing(const std::string& name, const Entry& entry, int group) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The group has more room: loads that failed for lack of memory may be tried again.
  void ForgetPauses(int group) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Counts the outcome of a load in `place`.
  void CountLoad(Place& place, const absl::Status& status) const;
  // Begins the load of the entry's files in the groups, which must not be empty. The caller sets
  // entry.replacing.
  void EnterLoad(const std::string& name, Entry& entry, const std::vector<int>& groups)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Adds an operation and returns its name.
  std::string BeginOperation(const std::string& name, Entry& entry,
                             wan::v1::ModelOperation::Kind kind)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void EndOperation(const std::string& name, Entry& entry, const std::string& operation,
                    const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void TellWatchers(const std::string& name) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status RunLoad(const ModelSpec& asked, int group);
  // Has the digests of the model's files computed, as the group's engine has read them.
  void WantDigests(const std::string& name, int group) const;
  // Whether Add named these paths.
  bool IsConfigured(const ModelSpec& spec) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The model is not loaded any more, or could not be loaded.
  void SetIdle(const std::string& name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Calls options_.on_device_lost if a task failed because of that.
  void Hear(const absl::Status& status, int group) const;
  absl::Status RunWarmup(const std::string& name, int group, const std::vector<VideoShape>& shapes,
                         const std::stop_token& caller);
  // The model that was READY in the group has given `error`, which its jobs would give as well: it
  // becomes FAILED there and gives its memory back. On the executor's thread.
  void Discard(const std::string& name, int group, const absl::Status& error);
  std::stop_token stop_token() const;
  // Replaces the engine's CANCELLED by SERVER_STOPPING if Stop was the cause.
  static absl::Status OrStopping(absl::Status status, const std::stop_token& stop);
  // Loads the model anew if Stop has ended its latest load, and Resume was called since.
  void LoadInterrupted(const std::string& name);
  // The state of a group's place after a load that ended with `status`.
  void SettlePlace(const std::string& name, Entry& entry, int group, const absl::Status& status)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // All groups have ended a load. Returns its outcome.
  absl::Status SettleLoad(const std::string& name, Entry& entry)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The load in one group has ended.
  void FinishLoad(const std::string& name, int group, const absl::Status& ended,
                  absl::Duration taken);
  // Calls `done` with the model, or with the error if the task failed.
  static void Tell(const Done& done, const absl::Status& status, const wan::v1::Model& model);
  // If it returns no answer, the caller must free the model in the groups of `resident`.
  Answer BeginUnload(const std::string& name, std::vector<int>* resident);
  // Returns where the model is READY, or an error.
  absl::StatusOr<std::vector<int>> CheckReady(const std::string& name) const;
  wan::v1::Model Describe(const std::string& name, const Entry& entry) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  DeviceGroups& groups_;
  Clock& clock_;
  const ModelRegistryOptions options_;
  mutable absl::Mutex mutex_;
  std::stop_source stopping_ ABSL_GUARDED_BY(mutex_);
  int64_t last_operation_ ABSL_GUARDED_BY(mutex_) = 0;
  mutable absl::Mutex watchers_mutex_ ABSL_ACQUIRED_AFTER(mutex_);
  int64_t last_watcher_ ABSL_GUARDED_BY(watchers_mutex_) = 0;
  std::map<int64_t, std::function<void(const std::string&)>> watchers_
      ABSL_GUARDED_BY(watchers_mutex_);
  std::map<std::string, Entry, std::less<>> entries_ ABSL_GUARDED_BY(mutex_);
  // The models of kMaxIdleModels, the oldest first. One that was loaded since may be among them.
  std::list<std::string> idle_ ABSL_GUARDED_BY(mutex_);
  // Not in entries_, because jobs of an earlier process may name a model that is no longer known.
  std::map<std::string, int, std::less<>> jobs_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace wan::server
