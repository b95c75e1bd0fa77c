// The gRPC services of wan.v1: thin shells around what does the work. What is passed in must
// outlive the server that a service is registered with.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "engine/api/clock.h"
#include "server/jobs/stop_mode.h"
#include "server/watch/not_serving.h"
#include "wan/v1/telemetry.pb.h"

namespace grpc {
class Service;
}

namespace wan::server {

class Admission;
class AllDevices;
class Gatekeeper;
class JobService;
class ModelOperations;
class ModelTable;
class WorkerPool;

// How long each service's streams may carry nothing before they get a heartbeat is
// `heartbeat_interval`; zero: for ever. `stopping` ends the streams that have no other end.

// Calls that nobody reads for a while end by `clock`.
std::unique_ptr<grpc::Service> MakeVideoGenerationService(JobService& jobs, Clock& clock,
                                                          absl::Duration heartbeat_interval,
                                                          const Gatekeeper& gatekeeper,
                                                          Admission& admission, WorkerPool& pool);

std::unique_ptr<grpc::Service> MakeModelManagementService(ModelTable& models,
                                                          ModelOperations& operations, Clock& clock,
                                                          absl::Duration heartbeat_interval,
                                                          const Gatekeeper& gatekeeper,
                                                          Admission& admission, WorkerPool& pool,
                                                          std::stop_token stopping);

// What becomes of the running job when the server stops or is drained.
struct StopSettings {
  StopMode mode = StopMode::kAuto;
  absl::Duration grace;
};

// `stop` is asked at each drain: the settings may change.
std::unique_ptr<grpc::Service> MakeAdministrationService(std::function<StopSettings()> stop,
                                                         JobService& jobs, Clock& clock,
                                                         const Gatekeeper& gatekeeper,
                                                         Admission& admission, WorkerPool& pool);

// What GetServerInfo tells beside the queue. Nothing of it changes.
struct ServerFacts {
  std::string version;
  std::map<std::string, std::string> libraries;
  absl::Time start_time;
  std::string dtype;
  // The device groups with their devices and lists of models.
  std::vector<wan::v1::DeviceGroup> groups;
};

// `not_serving` returns why the server takes no jobs now.
std::unique_ptr<grpc::Service> MakeTelemetryService(ServerFacts facts, const AllDevices& devices,
                                                    std::function<NotServingReasons()> not_serving,
                                                    Clock& clock, absl::Duration heartbeat_interval,
                                                    JobService& jobs, const Gatekeeper& gatekeeper,
                                                    Admission& admission, WorkerPool& pool,
                                                    std::stop_token stopping);

}  // namespace wan::server
