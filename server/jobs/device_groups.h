// The device groups of a server: each has an engine, and a thread that calls it.
#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "engine/api/engine.h"
#include "server/jobs/executor.h"

namespace wan::server {

// Thread-safe. Groups have the numbers 0 to size() - 1. A group serves until its device is lost,
// and never again after that. Only Stop blocks; callers may hold their locks during the other
// calls.
class DeviceGroups {
 public:
  // Whether the settings let the group load the model. May be called on any thread.
  using MayHaveModel = std::function<bool(int group, std::string_view model)>;

  // `engines` must not be empty and must outlive the object. `names` are the devices of each group
  // as the settings write them, "cuda:0,1"; if empty, the names come from the engines. If
  // `may_have` is null, every group may load every model.
  explicit DeviceGroups(const std::vector<Engine*>& engines,
                        const std::vector<std::string>& names = {},
                        MayHaveModel may_have = nullptr);
  DeviceGroups(const DeviceGroups&) = delete;
  DeviceGroups& operator=(const DeviceGroups&) = delete;

  int size() const { return static_cast<int>(groups_.size()); }
  Engine& engine(int group) const { return groups_[static_cast<size_t>(group)].engine; }
  Executor& executor(int group) { return groups_[static_cast<size_t>(group)].executor; }
  // The engine's description of the group's first device; its field `device` names all devices.
  const DeviceDescription& device(int group) const {
    return groups_[static_cast<size_t>(group)].device;
  }
  bool MayHave(int group, std::string_view model) const {
    return may_have_ == nullptr || may_have_(group, model);
  }

  // Records that the group's device is lost. Returns how many groups still serve; a second call for
  // the group returns the same number.
  int Leave(int group, const absl::Status& problem);
  bool Serves(int group) const;
  // The number of groups that serve.
  int serving() const;
  // The error that made the group stop serving; OK while it serves.
  absl::Status ProblemOf(int group) const;

  // Makes every executor look for jobs.
  void WakeAll();
  // Posts a task to the first group that serves; use it for tasks that any group can run.
  void Post(Executor::Task task);
  // Stops all executors.
  void Stop();

 private:
  struct Group {
    explicit Group(Engine& its_engine) : engine(its_engine), device(its_engine.Device()) {}
    Engine& engine;
    DeviceDescription device;  // set in the constructor
    Executor executor;
  };
  struct Loss {
    absl::Status problem;
    int serving = 0;  // groups that still served after this loss
  };

  const MayHaveModel may_have_;
  mutable absl::Mutex mutex_;  // leaf lock: no other lock is taken under it
  std::vector<std::optional<Loss>> losses_ ABSL_GUARDED_BY(mutex_);
  std::deque<Group> groups_;  // not changed after construction
};

}  // namespace wan::server
