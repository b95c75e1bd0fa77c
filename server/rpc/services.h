// Makes the gRPC services of wan.v1, thin shells around JobService and others. All arguments must
// outlive the gRPC server.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "server/jobs/stop_mode.h"
#include "server/rpc/service_shared.h"
#include "server/watch/not_serving.h"
#include "wan/v1/telemetry.pb.h"

namespace grpc {
class Service;
}

namespace wan::server {

class AllDevices;
class JobService;
class ModelOperations;
class ModelTable;

std::unique_ptr<grpc::Service> MakeVideoGenerationService(const ServiceShared& shared,
                                                          JobService& jobs);

std::unique_ptr<grpc::Service> MakeModelManagementService(const ServiceShared& shared,
                                                          ModelTable& models,
                                                          ModelOperations& operations);

// What a drain does with running jobs: the mode and the longest time.
struct StopSettings {
  StopMode mode = StopMode::kAuto;
  absl::Duration grace;
};

// The service calls `stop` at each drain, because the settings may change.
std::unique_ptr<grpc::Service> MakeAdministrationService(const ServiceShared& shared,
                                                         std::function<StopSettings()> stop,
                                                         JobService& jobs);

// The part of GetServerInfo that never changes.
struct ServerFacts {
  std::string version;
  std::map<std::string, std::string> libraries;
  absl::Time start_time;
  std::string dtype;
  // The device groups; each lists its devices and its models.
  std::vector<wan::v1::DeviceGroup> groups;
};

// `not_serving` returns why the server takes no jobs now; an empty list if it takes jobs.
std::unique_ptr<grpc::Service> MakeTelemetryService(const ServiceShared& shared, ServerFacts facts,
                                                    const AllDevices& devices,
                                                    std::function<NotServingReasons()> not_serving,
                                                    JobService& jobs);

}  // namespace wan::server
