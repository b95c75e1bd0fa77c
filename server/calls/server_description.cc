#include "server/calls/server_description.h"

#include <set>
#include <utility>

#include "absl/status/statusor.h"
#include "engine/api/utf8.h"
#include "server/conversion/convert.h"
#include "server/conversion/names.h"

namespace wan::server {

void AddTo(const NotServingReasons& reasons, wan::v1::ServerInfo& info) {
  for (const NotServing& reason : reasons) {
    wan::v1::NotServingReason& added = *info.add_not_serving_reasons();
    added.set_reason(reason.reason);
    added.set_message(ToUtf8(reason.message));
  }
}

ServerDescription::ServerDescription(ServerFacts facts, const AllDevices& devices,
                                     std::function<NotServingReasons()> not_serving,
                                     JobService& jobs)
    : facts_(std::move(facts)),
      devices_(devices),
      not_serving_(std::move(not_serving)),
      jobs_(jobs) {}

wan::v1::ServerInfo ServerDescription::Info(const std::optional<std::string>& owner) const {
  wan::v1::ServerInfo info;
  info.set_version(facts_.version);
  info.mutable_libraries()->insert(facts_.libraries.begin(), facts_.libraries.end());
  *info.mutable_start_time() = ToProto(facts_.start_time);
  info.set_dtype(facts_.dtype);
  const JobStats stats = jobs_.Stats();
  AddGroups(stats, owner, info);
  info.set_queued_jobs(stats.queued_total);
  info.set_running_jobs(stats.running_total);
  info.set_queue_capacity(stats.queue_capacity);
  info.set_draining(stats.draining);
  AddTo(not_serving_(), info);
  return info;
}

void ServerDescription::AddGroups(const JobStats& stats, const std::optional<std::string>& owner,
                                  wan::v1::ServerInfo& info) const {
  std::set<std::string> devices;
  info.mutable_groups()->Assign(facts_.groups.begin(), facts_.groups.end());
  for (wan::v1::DeviceGroup& group : *info.mutable_groups()) {
    for (const std::string& device : group.devices()) {
      if (devices.insert(device).second) info.add_devices(device);
    }
    const JobStats::Group& state = stats.groups[static_cast<size_t>(group.number())];
    if (MaySee(owner, state.job)) group.set_job(state.job);
    if (!state.problem.ok()) *group.mutable_error() = ToProto(state.problem);
  }
  for (const wan::v1::Model& model : jobs_.models().List()) {
    for (const wan::v1::ModelPlacement& placement : model.placements()) {
      if (placement.state() != wan::v1::MODEL_STATE_READY) continue;
      info.mutable_groups(placement.group())
          ->add_resident_models(std::string(BareModelName(model.name())));
    }
  }
}

bool ServerDescription::MaySee(const std::optional<std::string>& owner,
                               const std::string& job) const {
  if (!owner.has_value() || job.empty()) return true;
  const absl::StatusOr<std::string> found = jobs_.OwnerOf(job, "name");
  return found.ok() && *found == *owner;
}

}  // namespace wan::server
