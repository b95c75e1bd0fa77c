// Keeps the models, their states in each device group, and the number of jobs that need each model.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <optional>
#include <set>
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
#include "server/watch/listener.h"
#include "wan/v1/model_management.pb.h"

namespace wan::server {

// Maximum number of models that the table remembers although they are neither in the settings nor
// loaded: models that were unloaded, and models whose loading failed, which are kept for their
// operations. The table forgets the oldest of them.
inline constexpr size_t kMaxIdleModels = 32;

// Thread-safe, and never waits for an engine's work. A name may be bare ("ti2v-5b") or a resource
// name ("models/ti2v-5b").
//
// A model may be resident in several device groups. The model is READY while it is loaded in any
// serving group that may have it. A load fails if none of these groups has the model when the load
// ends.
//
// If a load names a new model and fails, the table forgets the name again. The call, its operation
// and GetEnded then return the error.
class ModelTable {
 public:
  using Done = std::function<void(absl::StatusOr<wan::v1::Model>)>;

  // All arguments must outlive the table.
  ModelTable(const DeviceGroups& groups, Clock& clock, std::vector<StateListener*> listeners)
      : groups_(groups), clock_(clock), listeners_(std::move(listeners)) {}

  // Adds a model in the state UNLOADED. Fails with ALREADY_EXISTS if the name is taken;
  // INVALID_ARGUMENT if the name or a LoRA's is not 1 to 63 letters, digits, '.', '_' and '-', if a
  // path does not have 1 to kMaxPathBytes bytes or has a NUL among them, or if there are more than
  // kMaxLorasOfModel LoRAs.
  absl::Status Add(const ModelSpec& given);

  // Fails with NOT_FOUND (MODEL_NOT_FOUND) for an unknown name; the message includes the error of
  // the name's last load.
  absl::StatusOr<wan::v1::Model> Get(std::string_view name) const;
  // Like Get, but if the name is unknown because its only load failed, returns the model as FAILED,
  // with its operations. Use GetEnded to follow an operation to its end.
  absl::StatusOr<wan::v1::Model> GetEnded(std::string_view name) const;
  // Returns all models, ordered by name.
  std::vector<wan::v1::Model> List() const;
  // Returns one page of the models, ordered by name. Fails with INVALID_ARGUMENT if the page size
  // or the token is wrong. A page ends early when it has grown to 3 MiB.
  absl::StatusOr<wan::v1::ListModelsResponse> List(const wan::v1::ListModelsRequest& request) const;

  // Calls `changed` with a model's bare name ("ti2v-5b") whenever the model may have changed, until
  // RemoveWatcher. The calls come from any thread with the table's lock held, so `changed` must be
  // quick and may call no method of the table except RemoveWatcher. Returns the watcher's number.
  int64_t AddWatcher(std::function<void(const std::string& name)> changed);
  // A call of `changed` that has started may still be running when RemoveWatcher returns.
  void RemoveWatcher(int64_t watcher);

  bool IsReady(std::string_view name) const;
  // Whether the model is READY in the group.
  bool IsReadyIn(std::string_view name, int group) const;
  // Returns the groups in which the model is READY; only groups that serve, unless no group serves.
  std::vector<int> ReadyIn(std::string_view name) const;
  // Returns the model's state; nothing for an unknown name.
  std::optional<wan::v1::ModelState> StateOf(std::string_view name) const;
  // Whether the group should try to load the model because jobs wait for it. The group must be
  // allowed to have the model and lack it, another group with the same kind of device must have it,
  // and no load of the model may be running. If the group's last load failed for lack of memory,
  // enough time must have passed, or a model must have been unloaded there. A load that failed for
  // another reason is not tried again.
  bool MayLoadMissing(std::string_view name, int group) const;
  // Returns how long the model's last load took, its warm-up included; nothing before the first
  // load.
  std::optional<absl::Duration> LoadTime(std::string_view name) const;
  // Returns the report of the stage Model_Initialization of the group's last successful load.
  std::optional<wan::v1::StageReport> LoadReport(std::string_view name, int group) const;

  // Counts a new job for the model; the model cannot be unloaded until RemoveJob. Returns an error
  // and counts nothing unless the model is READY: INVALID_ARGUMENT (a violation of `model` that
  // lists the known names), UNAVAILABLE (MODEL_LOADING) or FAILED_PRECONDITION (MODEL_NOT_READY).
  absl::Status AddJob(std::string_view name);
  // Counts a job that an earlier process accepted. The name may be unknown; the job then waits
  // until such a model is loaded.
  void AddRecoveredJob(std::string_view name);
  void RemoveJob(std::string_view name);

  // Call OnGroupLeft when a group has stopped serving and others still serve. Updates the states of
  // the models that were loaded in that group.
  void OnGroupLeft();

 private:
  // The following members are for ModelOperations, which makes the engine's calls.
  friend class ModelOperations;

  // The answer to a caller if the answer is known at once; nullopt: executors must work first.
  using Answer = std::optional<absl::StatusOr<wan::v1::Model>>;
  // The consequences of the end of a load in one group.
  struct LoadEnd {
    std::vector<Done> waiters;  // the callers to answer; empty while another group still loads
    absl::Status outcome;       // the outcome of the load in all groups
    wan::v1::Model model;
    bool kept = false;  // whether the load failed and the group kept the model that it had
    // Whether the group failed to remove the new LoRAs again, so that its engine must free the
    // model.
    bool stranded = false;
    // The groups that must load `undo` now, because another group kept the model's former LoRAs.
    // Call EndLoad once more for each of these groups.
    std::vector<int> undo_groups;
    ModelSpec undo;
  };

  // Returns the paths with which Add was called for the model.
  std::set<std::string> ConfiguredPaths(const std::string& name) const;
  // A caller's request to load a model, with the folders in which its files may lie.
  struct LoadCall {
    ModelSpec& spec;
    const LoraEdits& edits;
    const ModelRoots& roots;
    const LoraFolders& folders;
  };
  // Begins a load, or joins the running load. Without an immediate answer, `done` (unless null) is
  // called at the load's end. The calling code must then load the model in the groups of `begin`,
  // which may be empty, and call EndLoad for each of these groups. Completes the spec, whose name
  // must be bare: if it lacks a path or LoRAs, takes those of the running load, or otherwise of the
  // model; applies the edits; adds the LoRAs of the folders; makes paths absolute.
  Answer BeginLoad(const LoadCall& call, const Done& done, std::vector<int>* begin);
  // Returns the path with which the group's engine has a model that is being given other LoRAs;
  // nothing if the running load reads the model in this group.
  std::optional<std::string> ReplacedPath(const std::string& name, int group) const;
  // Begins to load a model that the group lacks, if MayLoadMissing still holds.
  std::optional<ModelSpec> BeginMissing(const std::string& name, int group);
  // If the model's latest load was interrupted and the model is not being loaded, returns its spec;
  // then returns nothing until the next interruption.
  std::optional<ModelSpec> TakeInterrupted(const std::string& name);
  void NoteLoadReport(const std::string& name, int group,
                      const std::optional<wan::v1::StageReport>& report);
  LoadEnd EndLoad(const std::string& name, int group, const absl::Status& status,
                  absl::Duration taken);
  // If there is no immediate answer, the caller must free the model in the groups of `resident`.
  Answer BeginUnload(const std::string& name, std::vector<int>* resident);
  void EndUnload(const std::string& name, int group, const absl::Status& status);
  // Call this function when the unload has ended in all groups. Returns the unloaded model.
  wan::v1::Model SetUnloaded(const std::string& name);
  // Returns the groups in which the model is READY, or an error if there are none.
  absl::StatusOr<std::vector<int>> CheckReady(const std::string& name) const;
  // Adds a warm-up to the model's operations and returns the operation's name.
  std::string BeginWarmup(const std::string& name);
  wan::v1::Model EndWarmup(const std::string& name, const std::string& operation,
                           const absl::Status& outcome);
  // Makes the model FAILED in a group where it is READY. Returns false if the model is no longer
  // READY in the group, because somebody asked to unload the model.
  bool SetFailed(const std::string& name, int group, const absl::Status& error);
  std::vector<std::string> Names() const;

  // The state of a model in one device group.
  struct Place {
    wan::v1::ModelState state = wan::v1::MODEL_STATE_UNLOADED;
    absl::Status error;
    std::optional<wan::v1::StageReport> load_report;  // the report of the last successful load
    // Number of loads that failed since the last successful one.
    int failed_loads = 0;
    bool loaded = false;  // whether the current load has succeeded here
    bool kept = false;    // a load with other LoRAs failed, and the group kept the former ones
    absl::Time retry = absl::InfinitePast();  // earliest time, on the steady clock, of the next try
                                              // of BeginMissing
  };
  struct Entry {
    // The argument of Add; nothing for a model that only callers of Load have named.
    std::optional<ModelSpec> configured;
    std::string path;
    std::vector<LoraSource> loras;
    std::vector<Place> places;  // the index is the group's number
    // Refresh computes `state` and `error` from `places`.
    wan::v1::ModelState state = wan::v1::MODEL_STATE_UNLOADED;
    absl::Status error;
    int loading = 0;         // number of groups in which the current load has not ended
    bool replacing = false;  // whether the current load gives a loaded model other LoRAs
    // Whether the current load only adds LoRAs: the model then stays READY, and jobs may use it.
    bool adding = false;
    // Set if a group refused the new LoRAs: the error for which the current load removes them again
    // from the other groups, so that all groups have the same LoRAs.
    std::optional<absl::Status> undoing;
    // The spec of the last successful load; before the first load, the argument of Add.
    std::optional<ModelSpec> sound;
    bool interrupted = false;  // whether a drain or stop has ended the latest load
    absl::Status load_error;   // the error of the first group whose load failed
    std::vector<Done> load_waiters;
    // The oldest operation comes first.
    std::vector<wan::v1::ModelOperation> operations;
    std::optional<absl::Duration> load_time;  // how long the last successful load took
    std::string load_operation;  // the name of the operation that is loading the model now
  };

  std::set<std::string> ConfiguredPathsLocked(const std::string& name) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Fills in the path and LoRAs that a load's spec leaves out.
  absl::Status Complete(const LoadCall& call, const std::vector<LoraSource>& found) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns the entry of this name; creates the entry if it is missing.
  Entry& EntryOf(const std::string& name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static Place& PlaceIn(Entry& entry, int group) {
    return entry.places[static_cast<size_t>(group)];
  }
  static const Place& PlaceIn(const Entry& entry, int group) {
    return entry.places[static_cast<size_t>(group)];
  }
  // Returns the entry of a known name, or null.
  const Entry* FindKnown(std::string_view name) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns the error for an unknown name; the message includes the error of the name's last load.
  absl::Status NotKnown(const std::string& name) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns the serving groups that may have the model; if no group serves, all groups that may
  // have it.
  std::vector<int> PlacesOf(std::string_view name) const;
  // Returns the groups of PlacesOf(name) in which the model is READY.
  std::vector<int> ReadyPlaces(const std::string& name, const Entry& entry) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static void SetPlace(Entry& entry, int group, wan::v1::ModelState state,
                       const absl::Status& error);
  // Computes the model's state from its places, and tells the listeners and watchers.
  void Refresh(const std::string& name, Entry& entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool MayLoadMissing(const std::string& name, const Entry& entry, int group) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Call ForgetPauses when the group has more free memory: loads that failed there for lack of
  // memory are tried again.
  void ForgetPauses(int group) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // After a load, updates the failure count of `place` and the time of its next try.
  void CountLoad(Place& place, const absl::Status& status) const;
  // Marks the groups (at least one) as LOADING and begins an operation. The caller must set
  // entry.replacing before.
  void EnterLoad(const std::string& name, Entry& entry, const std::vector<int>& groups)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Sets a group's place when its load has ended with `status`.
  void SettlePlace(const std::string& name, Entry& entry, int group, const absl::Status& status)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Call this function when all groups have ended a load. If some groups have got other LoRAs and
  // one group has kept the former LoRAs, restores the model's former LoRAs, and returns the groups
  // that must load the former LoRAs.
  std::vector<int> BeginUndo(Entry& entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Call this function when all groups have ended a load and no group has to undo it. Returns the
  // load's outcome.
  absl::Status SettleLoad(const std::string& name, Entry& entry)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Call this function when a model was unloaded or could not be loaded: puts the model into
  // `idle_`.
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
  // The models that kMaxIdleModels limits, from the oldest on. The list may contain models that
  // have been loaded again.
  std::list<std::string> idle_ ABSL_GUARDED_BY(mutex_);
  // These counts are not in entries_, because jobs of an earlier process may name a model that is
  // no longer known.
  std::map<std::string, int, std::less<>> jobs_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace wan::server
