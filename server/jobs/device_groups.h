// The device groups of a server: each has an engine, and a thread that calls the engine.
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

// Thread-safe. The groups are numbered 0 to size() - 1. A group serves until the group's device is
// lost, and never serves again afterwards. Only Stop blocks; callers may hold their locks during
// the other calls.
class DeviceGroups {
 public:
  // Whether the settings let the group load the model. Any thread may call this function.
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
  // Returns the engine's description of the group's first device, but with all the group's devices
  // in the field `device`.
  const DeviceDescription& device(int group) const {
    return groups_[static_cast<size_t>(group)].device;
  }
  bool MayHave(int group, std::string_view model) const {
    return may_have_ == nullptr || may_have_(group, model);
  }

  // Records that the group's device is lost, and returns how many groups still serve. A second call
  // for a group changes nothing and returns the number that the first call returned.
  int Leave(int group, const absl::Status& problem);
  bool Serves(int group) const;
  // The number of groups that serve.
  int serving() const;
  // Returns the error that made the group stop serving; OK while it serves.
  absl::Status ProblemOf(int group) const;

  // Makes every executor look for jobs.
  void WakeAll();
  // Posts a task to the first group that serves; use it for tasks that any group can run.
  void Post(Executor::Task task);
  // Stops all executors and waits for them.
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
    int serving = 0;  // number of groups that still served after this loss
  };

  const MayHaveModel may_have_;
  mutable absl::Mutex mutex_;  // a leaf lock: no other lock is taken while it is held
  std::vector<std::optional<Loss>> losses_ ABSL_GUARDED_BY(mutex_);
  std::deque<Group> groups_;  // not changed after construction
};

}  // namespace wan::server
