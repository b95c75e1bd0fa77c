// Makes the gRPC services of wan.v1, which are thin shells around JobService and other classes. All
// arguments must outlive the gRPC server.
#pragma once

#include <functional>
#include <memory>

#include "absl/time/time.h"
#include "server/jobs/stop_mode.h"
#include "server/rpc/service_shared.h"

namespace grpc {
class Service;
}

namespace wan::server {

class AllDevices;
class JobService;
class ModelOperations;
class ModelTable;
class ServerDescription;

std::unique_ptr<grpc::Service> MakeVideoGenerationService(const ServiceShared& shared,
                                                          JobService& jobs);

std::unique_ptr<grpc::Service> MakeModelManagementService(const ServiceShared& shared,
                                                          ModelTable& models,
                                                          ModelOperations& operations);

// How a drain ends running jobs: the mode and the longest time.
struct StopSettings {
  StopMode mode = StopMode::kAuto;
  absl::Duration grace;
};

// The service calls `stop` at each drain, because the settings may change.
std::unique_ptr<grpc::Service> MakeAdministrationService(const ServiceShared& shared,
                                                         std::function<StopSettings()> stop,
                                                         JobService& jobs);

std::unique_ptr<grpc::Service> MakeTelemetryService(const ServiceShared& shared,
                                                    const ServerDescription& description);

}  // namespace wan::server
