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

// Thread-safe. Groups have the numbers 0 to size() - 1. A group serves until its device is lost; it
// never comes back. No call waits, except Stop; so others may call with their locks held.
class DeviceGroups {
 public:
  // Whether the group may have the model; called on any thread.
  using MayHaveModel = std::function<bool(int group, std::string_view model)>;

  // `engines` must not be empty and must outlive the object. `names` has the devices of each group
  // as the settings write them, "cuda:0,1"; empty: what each engine says of its device. A null
  // function: every group may have every model.
  explicit DeviceGroups(const std::vector<Engine*>& engines,
                        const std::vector<std::string>& names = {},
                        MayHaveModel may_have = nullptr);
  DeviceGroups(const DeviceGroups&) = delete;
  DeviceGroups& operator=(const DeviceGroups&) = delete;

  int size() const { return static_cast<int>(groups_.size()); }
  Engine& engine(int group) const { return groups_[static_cast<size_t>(group)].engine; }
  Executor& executor(int group) { return groups_[static_cast<size_t>(group)].executor; }
  // The facts of the group's first device from its engine; `device` names all devices.
  const DeviceDescription& device(int group) const {
    return groups_[static_cast<size_t>(group)].device;
  }
  bool MayHave(int group, std::string_view model) const {
    return may_have_ == nullptr || may_have_(group, model);
  }

  // The group's device is lost. Returns how many groups serve then, and the same if it is called
  // again.
  int Leave(int group, const absl::Status& problem);
  bool Serves(int group) const;
  // The number of groups that serve.
  int serving() const;
  // Why the group has left; OK while it serves.
  absl::Status ProblemOf(int group) const;

  // Makes every executor look for jobs.
  void WakeAll();
  // Posts a task that any group can do to the first group that serves.
  void Post(Executor::Task task);
  // Stops all executors.
  void Stop();

 private:
  struct Group {
    explicit Group(Engine& its_engine) : engine(its_engine), device(its_engine.Device()) {}
    Engine& engine;
    DeviceDescription device;  // fixed, too
    Executor executor;
  };
  struct Loss {
    absl::Status problem;
    int serving = 0;  // others, when the group left
  };

  const MayHaveModel may_have_;
  mutable absl::Mutex mutex_;  // a leaf: nothing is called with it held
  std::vector<std::optional<Loss>> losses_ ABSL_GUARDED_BY(mutex_);
  std::deque<Group> groups_;  // fixed when the object has been made
};

}  // namespace wan::server
