// The models, their states in each device group, and how many jobs need each of them.
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

// Most models that are remembered though they are neither configured nor loaded: those that were
// unloaded, and the operations of those whose loading failed. The oldest are forgotten.
inline constexpr size_t kMaxIdleModels = 32;

// Thread-safe, and never waits for an engine's work. A name may be bare ("ti2v-5b") or a resource
// name ("models/ti2v-5b").
//
// A model may be resident in several device groups. It is READY while it is in any of those that
// may have it and serve; a load fails if it is in none then.
//
// A name that a load brought and that was never loaded is not known any more when its loading has
// failed: the call, the operation and GetEnded tell the error.
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
  // As Get, and for a name that is not known because its loading failed the model as it was then:
  // FAILED, with its operations. For those who watch an operation.
  absl::StatusOr<wan::v1::Model> GetEnded(std::string_view name) const;
  // Returns all models, ordered by name.
  std::vector<wan::v1::Model> List() const;
  // Returns one page of them. INVALID_ARGUMENT if the page size or the token is wrong. A page ends
  // early when it has grown to 3 MiB.
  absl::StatusOr<wan::v1::ListModelsResponse> List(const wan::v1::ListModelsRequest& request) const;

  // Calls `changed` with the bare name of a model whenever that model may have changed, until
  // RemoveWatcher. The calls come from any thread with the table's lock held: `changed` must be
  // quick, and of the table it may call only RemoveWatcher. Returns the watcher's number.
  int64_t AddWatcher(std::function<void(const std::string& name)> changed);
  // A call of `changed` that has started may still run when this returns.
  void RemoveWatcher(int64_t watcher);

  bool IsReady(std::string_view name) const;
  // Whether the model is READY in this group.
  bool IsReadyIn(std::string_view name, int group) const;
  // The groups in which it is READY; of those that serve, unless none does.
  std::vector<int> ReadyIn(std::string_view name) const;
  // Nothing for an unknown name.
  std::optional<wan::v1::ModelState> StateOf(std::string_view name) const;
  // Whether a group may have the model, lacks it while another one with the same kind of device has
  // it, and may have room for it now: no load of the model runs, and if the group's last one failed
  // for lack of memory, enough time has passed since, or a model was unloaded there. A load that
  // failed for another reason is not tried again.
  bool MayLoadMissing(std::string_view name, int group) const;
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

  // Call it when a group has left and others serve on: what models are in it no longer counts.
  void OnGroupLeft();

 private:
  // The rest is for ModelOperations, which does the engine's part of each change.
  friend class ModelOperations;

  // The answer that a caller gets at once; nullopt: the executors must work first.
  using Answer = std::optional<absl::StatusOr<wan::v1::Model>>;
  // The result of a load that has ended in one group.
  struct LoadEnd {
    std::vector<Done> waiters;  // empty while it runs in others
    absl::Status outcome;       // of the whole load
    wan::v1::Model model;
    bool kept = false;  // the group has what it had before
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
  // Returns the model whose latest load was interrupted, once, unless it is being loaded.
  std::optional<ModelSpec> TakeInterrupted(const std::string& name);
  void NoteLoadReport(const std::string& name, int group,
                      const std::optional<wan::v1::StageReport>& report);
  LoadEnd EndLoad(const std::string& name, int group, const absl::Status& status,
                  absl::Duration taken);
  // If it returns no answer, the caller must free the model in the groups of `resident`.
  Answer BeginUnload(const std::string& name, std::vector<int>* resident);
  void EndUnload(const std::string& name, int group, const absl::Status& status);
  // The unload has ended in all groups. Returns the model as it is then.
  wan::v1::Model SetUnloaded(const std::string& name);
  // Returns where the model is READY, or an error.
  absl::StatusOr<std::vector<int>> CheckReady(const std::string& name) const;
  // Adds an operation and returns its name.
  std::string BeginWarmup(const std::string& name);
  wan::v1::Model EndWarmup(const std::string& name, const std::string& operation,
                           const absl::Status& outcome);
  // The model becomes FAILED in a group where it is READY. Returns false if it is not, as somebody
  // has asked to unload it meanwhile.
  bool SetFailed(const std::string& name, int group, const absl::Status& error);
  std::vector<std::string> Names() const;

  // A model in one device group.
  struct Place {
    wan::v1::ModelState state = wan::v1::MODEL_STATE_UNLOADED;
    absl::Status error;
    std::optional<wan::v1::StageReport> load_report;  // of the last load that went well
    // Loads that failed since the last one that went well, and when BeginMissing may try another.
    int failed_loads = 0;
    bool kept = false;  // the load that was to replace what is here has failed
    absl::Time retry = absl::InfinitePast();  // of the steady clock
  };
  struct Entry {
    // The argument of Add; nothing for a model that callers named.
    std::optional<ModelSpec> configured;
    std::string path;
    std::vector<LoraSource> loras;
    std::vector<Place> places;  // by group
    // Both follow from `places`.
    wan::v1::ModelState state = wan::v1::MODEL_STATE_UNLOADED;
    absl::Status error;
    int loading = 0;         // tasks of the load that have not ended
    int loaded = 0;          // those that have ended well
    bool replacing = false;  // the load gives a loaded model other LoRAs
    // The files with which the model was last loaded; before that, the argument of Add.
    std::optional<ModelSpec> sound;
    bool interrupted = false;  // the end of the server has ended the latest load
    absl::Status load_error;   // of the first task that failed
    std::vector<Done> load_waiters;
    // Oldest first.
    std::vector<wan::v1::ModelOperation> operations;
    std::optional<absl::Duration> load_time;  // of the last load that went well
    std::string load_operation;               // the name of the operation that loads the model now
  };

  // The entry of this name, which is made if it is missing.
  bool IsConfiguredLocked(const ModelSpec& spec) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Entry& EntryOf(const std::string& name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static Place& PlaceIn(Entry& entry, int group) {
    return entry.places[static_cast<size_t>(group)];
  }
  static const Place& PlaceIn(const Entry& entry, int group) {
    return entry.places[static_cast<size_t>(group)];
  }
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
  bool MayLoadMissing(const std::string& name, const Entry& entry, int group) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Call when the group has more room: loads that failed for lack of memory may be tried again.
  void ForgetPauses(int group) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Counts the outcome of a load in `place`.
  void CountLoad(Place& place, const absl::Status& status) const;
  // Begins the load of the entry's files in the groups, which must not be empty. The caller sets
  // entry.replacing.
  void EnterLoad(const std::string& name, Entry& entry, const std::vector<int>& groups)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The state of a group's place after a load that ended with `status`.
  void SettlePlace(const std::string& name, Entry& entry, int group, const absl::Status& status)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // All groups have ended a load. Returns its outcome.
  absl::Status SettleLoad(const std::string& name, Entry& entry)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The model is not loaded any more, or could not be loaded.
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
  // The models of kMaxIdleModels, the oldest first. One that was loaded since may be among them.
  std::list<std::string> idle_ ABSL_GUARDED_BY(mutex_);
  // Not in entries_, because jobs of an earlier process may name a model that is no longer known.
  std::map<std::string, int, std::less<>> jobs_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace wan::server
