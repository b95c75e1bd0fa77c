// Keeps the models, their states in each device group, and the number of jobs that need each model.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <optional>
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
#include "server/watch/listener.h"
#include "wan/v1/model_management.pb.h"

namespace wan::server {

// Most remembered models that are neither in the settings nor loaded: models that were unloaded,
// and models whose loading failed, which are kept for their operations. The oldest are forgotten.
inline constexpr size_t kMaxIdleModels = 32;

// Thread-safe, and never waits for an engine's work. A name may be bare ("ti2v-5b") or a resource
// name ("models/ti2v-5b").
//
// A model may be resident in several device groups. It is READY while it is loaded in any serving
// group that may have it. A load fails if no such group has the model at its end.
//
// If a load names a new model and fails, the name becomes unknown again. The call, its operation
// and GetEnded return the error.
class ModelTable {
 public:
  using Done = std::function<void(absl::StatusOr<wan::v1::Model>)>;

  // All arguments must outlive the table.
  ModelTable(const DeviceGroups& groups, Clock& clock, std::vector<StateListener*> listeners)
      : groups_(groups), clock_(clock), listeners_(std::move(listeners)) {}

  // Adds a model in the state UNLOADED. ALREADY_EXISTS if the name is taken; INVALID_ARGUMENT if
  // the name or a LoRA's is not 1 to 63 letters, digits, '.', '_' and '-', if a path does not have
  // 1 to kMaxPathBytes bytes or has a NUL among them, or if there are more than kMaxLorasOfModel
  // LoRAs.
  absl::Status Add(const ModelSpec& given);

  // NOT_FOUND (MODEL_NOT_FOUND) for an unknown name; the message has the error of its last load.
  absl::StatusOr<wan::v1::Model> Get(std::string_view name) const;
  // Like Get, but if the only load of an unknown name failed, returns that model as FAILED with its
  // operations. Use it to follow an operation to its end.
  absl::StatusOr<wan::v1::Model> GetEnded(std::string_view name) const;
  // Returns all models, ordered by name.
  std::vector<wan::v1::Model> List() const;
  // Returns one page of the models, ordered by name. INVALID_ARGUMENT if the page size or the token
  // is wrong. A page ends early when it has grown to 3 MiB.
  absl::StatusOr<wan::v1::ListModelsResponse> List(const wan::v1::ListModelsRequest& request) const;

  // Calls `changed` with a model's bare name ("ti2v-5b") whenever the model may have changed, until
  // RemoveWatcher. The calls come from any thread with the table's lock held, so `changed` must be
  // quick and may call no method of the table except RemoveWatcher. Returns the watcher's number.
  int64_t AddWatcher(std::function<void(const std::string& name)> changed);
  // A call of `changed` that has started may still run when this returns.
  void RemoveWatcher(int64_t watcher);

  bool IsReady(std::string_view name) const;
  // Whether the model is READY in this group.
  bool IsReadyIn(std::string_view name, int group) const;
  // Returns the groups in which the model is READY; only groups that serve, unless no group serves.
  std::vector<int> ReadyIn(std::string_view name) const;
  // Returns nothing for an unknown name.
  std::optional<wan::v1::ModelState> StateOf(std::string_view name) const;
  // Whether the group should try to load the model because jobs wait for it. The group must be
  // allowed to have the model and lack it, another group with the same kind of device must have it,
  // and no load of the model may be running. If the group's last load failed for lack of memory,
  // enough time must have passed, or a model must have been unloaded there. A load that failed for
  // another reason is not tried again.
  bool MayLoadMissing(std::string_view name, int group) const;
  // How long the model's last load, warm-up included, took; nothing before the first.
  std::optional<absl::Duration> LoadTime(std::string_view name) const;
  // Returns the report of the stage Model_Initialization of the group's last successful load.
  std::optional<wan::v1::StageReport> LoadReport(std::string_view name, int group) const;

  // Counts a new job for the model, which cannot be unloaded until RemoveJob. Returns an error and
  // counts nothing unless the model is READY: INVALID_ARGUMENT (a violation of `model` that lists
  // the known names), UNAVAILABLE (MODEL_LOADING) or FAILED_PRECONDITION (MODEL_NOT_READY).
  absl::Status AddJob(std::string_view name);
  // Counts a job that an earlier process accepted. The name may be unknown; the job waits until the
  // model is loaded.
  void AddRecoveredJob(std::string_view name);
  void RemoveJob(std::string_view name);

  // Call it when a group has stopped serving and others still serve. Updates the states of models
  // that were loaded there.
  void OnGroupLeft();

 private:
  // The following members are for ModelOperations, which makes the engine's calls.
  friend class ModelOperations;

  // The immediate answer to a caller; nullopt: executors must work first.
  using Answer = std::optional<absl::StatusOr<wan::v1::Model>>;
  // The result of a load that has ended in one group.
  struct LoadEnd {
    std::vector<Done> waiters;  // callers to answer; empty while another group still loads
    absl::Status outcome;       // of the load in all groups
    wan::v1::Model model;
    bool kept = false;  // the load failed and the group kept the model that it had
  };

  // Whether Add named these paths.
  bool IsConfigured(const ModelSpec& spec) const;
  // Begins a load or joins the one that runs: if there is no answer, `done` (unless it is null)
  // waits for it. The caller must then load the model in the groups of `begin`, which may be none,
  // and call EndLoad for each. Where `spec`, whose name is bare, leaves out path and LoRAs, fills
  // in those of the load that runs, or else of the model as it is; makes its paths absolute.
  Answer BeginLoad(ModelSpec& spec, const ModelRoots& roots, const Done& done,
                   std::vector<int>* begin);
  // Begins the load of a model that the group lacks, if MayLoadMissing still holds.
  std::optional<ModelSpec> BeginMissing(const std::string& name, int group);
  // Returns the spec of the model if its latest load was interrupted and it is not being loaded;
  // after that nothing until the next interruption.
  std::optional<ModelSpec> TakeInterrupted(const std::string& name);
  void NoteLoadReport(const std::string& name, int group,
                      const std::optional<wan::v1::StageReport>& report);
  LoadEnd EndLoad(const std::string& name, int group, const absl::Status& status,
                  absl::Duration taken);
  // If it returns no answer, the caller must free the model in the groups of `resident`.
  Answer BeginUnload(const std::string& name, std::vector<int>* resident);
  void EndUnload(const std::string& name, int group, const absl::Status& status);
  // Call it when the unload has ended in all groups. Returns the model.
  wan::v1::Model SetUnloaded(const std::string& name);
  // Returns the groups in which the model is READY, or an error if there are none.
  absl::StatusOr<std::vector<int>> CheckReady(const std::string& name) const;
  // Adds an operation for a warm-up and returns its name.
  std::string BeginWarmup(const std::string& name);
  wan::v1::Model EndWarmup(const std::string& name, const std::string& operation,
                           const absl::Status& outcome);
  // Makes the model FAILED in a group where it is READY. Returns false if it is no longer READY
  // there, because somebody asked to unload it.
  bool SetFailed(const std::string& name, int group, const absl::Status& error);
  std::vector<std::string> Names() const;

  // The state of a model in one device group.
  struct Place {
    wan::v1::ModelState state = wan::v1::MODEL_STATE_UNLOADED;
    absl::Status error;
    std::optional<wan::v1::StageReport> load_report;  // of the last successful load
    // Number of loads that failed since the last successful one.
    int failed_loads = 0;
    bool kept = false;  // a load with other LoRAs failed, and the group kept the old ones
    absl::Time retry = absl::InfinitePast();  // earliest next try of BeginMissing, steady clock
  };
  struct Entry {
    // The argument of Add; nothing for a model that a caller of Load named.
    std::optional<ModelSpec> configured;
    std::string path;
    std::vector<LoraSource> loras;
    std::vector<Place> places;  // by group
    // `state` and `error` are computed from `places` by Refresh.
    wan::v1::ModelState state = wan::v1::MODEL_STATE_UNLOADED;
    absl::Status error;
    int loading = 0;         // groups that have not ended the current load
    int loaded = 0;          // groups that have loaded it successfully
    bool replacing = false;  // the load gives a loaded model other LoRAs
    // The spec of the last successful load; before that, the argument of Add.
    std::optional<ModelSpec> sound;
    bool interrupted = false;  // a drain or stop has ended the latest load
    absl::Status load_error;   // of the first group that failed
    std::vector<Done> load_waiters;
    // Oldest first.
    std::vector<wan::v1::ModelOperation> operations;
    std::optional<absl::Duration> load_time;  // of the last successful load
    std::string load_operation;               // the name of the operation that loads the model now
  };

  bool IsConfiguredLocked(const ModelSpec& spec) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The entry of this name, which is made if it is missing.
  Entry& EntryOf(const std::string& name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static Place& PlaceIn(Entry& entry, int group) {
    return entry.places[static_cast<size_t>(group)];
  }
  static const Place& PlaceIn(const Entry& entry, int group) {
    return entry.places[static_cast<size_t>(group)];
  }
  // Returns the entry of a known name, or null.
  const Entry* FindKnown(std::string_view name) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns the error for an unknown name, which includes the error of its last load.
  absl::Status NotKnown(const std::string& name) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns the serving groups that may have the model; if no group serves, all that may have it.
  std::vector<int> PlacesOf(std::string_view name) const;
  // Returns those of PlacesOf(name) in which the model is READY.
  std::vector<int> ReadyPlaces(const std::string& name, const Entry& entry) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static void SetPlace(Entry& entry, int group, wan::v1::ModelState state,
                       const absl::Status& error);
  // Computes the model's state from its places, and tells listeners and watchers.
  void Refresh(const std::string& name, Entry& entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool MayLoadMissing(const std::string& name, const Entry& entry, int group) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Call it when the group has more free memory, so that loads that failed for lack of memory are
  // tried again.
  void ForgetPauses(int group) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Updates the failure count and the next try of `place` after a load.
  void CountLoad(Place& place, const absl::Status& status) const;
  // Marks the groups (at least one) as LOADING and begins an operation. The caller sets
  // entry.replacing before.
  void EnterLoad(const std::string& name, Entry& entry, const std::vector<int>& groups)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Sets a group's place after its load ended with `status`.
  void SettlePlace(const std::string& name, Entry& entry, int group, const absl::Status& status)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Call it when all groups have ended a load. Returns the outcome of the load.
  absl::Status SettleLoad(const std::string& name, Entry& entry)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Call it when the model was unloaded or could not be loaded: puts it into `idle_`.
  void SetIdle(const std::string& name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::string BeginOperation(const std::string& name, Entry& entry,
                             wan::v1::ModelOperation::Kind kind)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void EndOperation(const std::string& name, Entry& entry, const std::string& operation,
                    const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void TellWatchers(const std::string& name) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  wan::v1::Model Describe(const std::string& name, const Entry& entry) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const DeviceGroups& groups_;
  Clock& clock_;
  const std::vector<StateListener*> listeners_;
  mutable absl::Mutex mutex_;
  int64_t last_operation_ ABSL_GUARDED_BY(mutex_) = 0;
  mutable absl::Mutex watchers_mutex_ ABSL_ACQUIRED_AFTER(mutex_);
  int64_t last_watcher_ ABSL_GUARDED_BY(watchers_mutex_) = 0;
  std::map<int64_t, std::function<void(const std::string&)>> watchers_
      ABSL_GUARDED_BY(watchers_mutex_);
  std::map<std::string, Entry, std::less<>> entries_ ABSL_GUARDED_BY(mutex_);
  // The models that kMaxIdleModels limits, oldest first. May contain models that were loaded since.
  std::list<std::string> idle_ ABSL_GUARDED_BY(mutex_);
  // Not in entries_, because jobs of an earlier process may name a model that is no longer known.
  std::map<std::string, int, std::less<>> jobs_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace wan::server
