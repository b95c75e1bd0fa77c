#include "server/jobs/device_groups.h"

#include <algorithm>
#include <utility>

namespace wan::server {

DeviceGroups::DeviceGroups(const std::vector<Engine*>& engines,
                           const std::vector<std::string>& names, MayHaveModel may_have)
    : may_have_(std::move(may_have)), losses_(engines.size()) {
  for (Engine* const engine : engines) groups_.emplace_back(*engine);
  for (size_t i = 0; i < std::min(names.size(), groups_.size()); ++i) {
    groups_[i].device.device = names[i];
  }
}

int DeviceGroups::Leave(int group, const absl::Status& problem) {
  absl::MutexLock lock(&mutex_);
  std::optional<Loss>& loss = losses_[static_cast<size_t>(group)];
  if (!loss.has_value()) {
    loss = Loss{problem, 0};
    for (const std::optional<Loss>& other : losses_) loss->serving += other.has_value() ? 0 : 1;
  }
  return loss->serving;
}

bool DeviceGroups::Serves(int group) const { return ProblemOf(group).ok(); }

int DeviceGroups::serving() const {
  absl::MutexLock lock(&mutex_);
  int serving = 0;
  for (const std::optional<Loss>& loss : losses_) serving += loss.has_value() ? 0 : 1;
  return serving;
}

absl::Status DeviceGroups::ProblemOf(int group) const {
  absl::MutexLock lock(&mutex_);
  const std::optional<Loss>& loss = losses_[static_cast<size_t>(group)];
  return loss.has_value() ? loss->problem : absl::OkStatus();
}

void DeviceGroups::WakeAll() {
  for (Group& group : groups_) group.executor.Wake();
}

void DeviceGroups::Post(Executor::Task task) {
  int group = 0;
  while (group + 1 < size() && !Serves(group)) ++group;
  executor(group).Post(std::move(task));
}

void DeviceGroups::Stop() {
  for (Group& group : groups_) group.executor.Halt();
  for (Group& group : groups_) group.executor.Stop();
}

}  // namespace wan::server
