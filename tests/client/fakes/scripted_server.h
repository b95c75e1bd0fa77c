// A gRPC server with the services of wan.v1 in this process, whose answers a test writes down.
#pragma once

#include <grpcpp/support/status.h>

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "google/protobuf/message.h"
#include "wan/v1/administration.pb.h"
#include "wan/v1/model_management.pb.h"
#include "wan/v1/telemetry.pb.h"
#include "wan/v1/video_generation.pb.h"

namespace wan::fakes {

// How a server stream goes.
template <typename Message>
struct Stream {
  // Sent one after the other.
  std::vector<Message> messages;
  // How the call ends after them.
  grpc::Status end;
  // Instead of ending, the call stays open until the caller cancels it or goes away.
  bool hold = false;
  // Called once the stream holds, and once its caller is gone; in a thread of gRPC.
  std::function<void()> on_hold;
  std::function<void()> on_cancel;
};

// Requests in the order they came. Thread-safe.
template <typename Request>
class Requests {
 public:
  void Add(const Request& request) {
    const std::lock_guard lock(mutex_);
    requests_.push_back(request);
  }
  std::vector<Request> All() const {
    const std::lock_guard lock(mutex_);
    return requests_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<Request> requests_;
};

// A function that a test may set at any time and that threads of gRPC call.
template <typename Function>
class Script {
 public:
  Script& operator=(Function function) {
    const std::lock_guard lock(mutex_);
    function_ = std::make_shared<const Function>(std::move(function));
    return *this;
  }
  // Null before it is set.
  std::shared_ptr<const Function> Get() const {
    const std::lock_guard lock(mutex_);
    return function_;
  }

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const Function> function_;
};

template <typename Request, typename Response>
using UnaryScript = Script<std::function<grpc::Status(const Request&, Response*)>>;
template <typename Request, typename Message>
using StreamScript = Script<std::function<Stream<Message>(const Request&)>>;

// What each method does. A method without a script answers UNIMPLEMENTED.
struct Scripts {
  StreamScript<wan::v1::GenerateRequest, wan::v1::Event> generate;
  UnaryScript<wan::v1::CreateJobRequest, wan::v1::Job> create_job;
  UnaryScript<wan::v1::SubmitBatchRequest, wan::v1::SubmitBatchResponse> submit_batch;
  UnaryScript<wan::v1::GetJobRequest, wan::v1::Job> get_job;
  UnaryScript<wan::v1::ListJobsRequest, wan::v1::ListJobsResponse> list_jobs;
  UnaryScript<wan::v1::CancelJobRequest, wan::v1::Job> cancel_job;
  UnaryScript<wan::v1::DeleteJobRequest, google::protobuf::Empty> delete_job;
  UnaryScript<wan::v1::QuoteRequest, wan::v1::QuoteResponse> quote;
  StreamScript<wan::v1::WatchJobRequest, wan::v1::Event> watch_job;
  StreamScript<wan::v1::DownloadArtifactRequest, wan::v1::DownloadArtifactResponse> download;
  UnaryScript<wan::v1::GetReportRequest, wan::v1::JobReport> get_report;
  UnaryScript<wan::v1::GetReceiptRequest, wan::v1::Receipt> get_receipt;
  UnaryScript<wan::v1::GetUsageRequest, wan::v1::Usage> get_usage;

  UnaryScript<wan::v1::ListModelsRequest, wan::v1::ListModelsResponse> list_models;
  UnaryScript<wan::v1::GetModelRequest, wan::v1::Model> get_model;
  UnaryScript<wan::v1::LoadModelRequest, wan::v1::Model> load_model;
  UnaryScript<wan::v1::UnloadModelRequest, wan::v1::Model> unload_model;
  UnaryScript<wan::v1::WarmupModelRequest, wan::v1::Model> warmup_model;

  StreamScript<wan::v1::WatchDevicesRequest, wan::v1::WatchDevicesResponse> watch_devices;
  UnaryScript<wan::v1::GetServerInfoRequest, wan::v1::ServerInfo> get_server_info;

  UnaryScript<wan::v1::DrainRequest, wan::v1::DrainResponse> drain;
  UnaryScript<wan::v1::UndrainRequest, wan::v1::UndrainResponse> undrain;

  // grpc.health.v1; the status is that of its protocol, for example 1 for SERVING.
  Script<std::function<int()>> health;
  // The bytes of its trailing metadata wan-not-serving-bin; without a script there are none.
  Script<std::function<std::string()>> not_serving;
};

class ScriptedServer {
 public:
  // Listens on a free port of 127.0.0.1.
  ScriptedServer();
  ~ScriptedServer();

  // Ends all calls and connections, and listens no more.
  void Stop();
  // After Stop: listens on the same port again.
  void Restart();

  int port() const { return port_; }
  // "127.0.0.1:PORT".
  std::string address() const;

  Scripts scripts;

 private:
  struct Services;

  void Listen();

  int port_ = 0;
  std::unique_ptr<Services> services_;
};

// An error with google.rpc details, as wanserve sends it.
grpc::Status ErrorWith(grpc::StatusCode code, const std::string& message,
                       const std::vector<const google::protobuf::Message*>& details);

}  // namespace wan::fakes
