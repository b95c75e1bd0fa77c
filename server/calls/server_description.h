// Describes the server to its callers: versions, devices, models and the state of the queue.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "server/calls/all_devices.h"
#include "server/jobs/job_service.h"
#include "server/watch/not_serving.h"
#include "wan/v1/telemetry.pb.h"

namespace wan::server {

// The part of the description that never changes.
struct ServerFacts {
  std::string version;
  std::map<std::string, std::string> libraries;
  absl::Time start_time;
  std::string dtype;
  // The device groups; each lists its devices and its models.
  std::vector<wan::v1::DeviceGroup> groups;
};

// Thread-safe. `devices` and `jobs` must outlive the object.
class ServerDescription {
 public:
  // `not_serving` returns why the server takes no jobs now; an empty list if it takes jobs.
  ServerDescription(ServerFacts facts, const AllDevices& devices,
                    std::function<NotServingReasons()> not_serving, JobService& jobs);

  // Returns the answer to Telemetry.GetServerInfo. Lists only the running jobs of `owner`; nullopt:
  // the running jobs of all owners. May block, because it reads the owners of jobs from the store.
  wan::v1::ServerInfo Info(const std::optional<std::string>& owner) const;

  NotServingReasons NotServing() const { return not_serving_(); }
  const AllDevices& devices() const { return devices_; }

 private:
  void AddGroups(const JobStats& stats, const std::optional<std::string>& owner,
                 wan::v1::ServerInfo& info) const;
  bool MaySee(const std::optional<std::string>& owner, const std::string& job) const;

  const ServerFacts facts_;
  const AllDevices& devices_;
  const std::function<NotServingReasons()> not_serving_;
  JobService& jobs_;
};

// Adds the reasons to the answer of GetServerInfo.
void AddTo(const NotServingReasons& reasons, wan::v1::ServerInfo& info);

}  // namespace wan::server
