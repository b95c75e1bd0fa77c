#include "tests/client/fakes/scripted_server.h"

#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <chrono>
#include <utility>

#include "google/rpc/status.pb.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "wan/v1/administration.grpc.pb.h"
#include "wan/v1/model_management.grpc.pb.h"
#include "wan/v1/telemetry.grpc.pb.h"
#include "wan/v1/video_generation.grpc.pb.h"

namespace wan::fakes {
namespace {

using grpc::CallbackServerContext;
using grpc::ServerUnaryReactor;
using grpc::ServerWriteReactor;

template <typename Message>
class StreamReactor final : public ServerWriteReactor<Message> {
 public:
  explicit StreamReactor(Stream<Message> stream) : stream_(std::move(stream)) { Next(); }

  void OnWriteDone(bool ok) override {
    if (ok) {
      Next();
    } else {
      this->Finish(grpc::Status::CANCELLED);
    }
  }

  void OnCancel() override {
    if (stream_.on_cancel) stream_.on_cancel();
    const std::lock_guard lock(mutex_);
    cancelled_ = true;
    if (holding_) this->Finish(grpc::Status::CANCELLED);
  }

  void OnDone() override { delete this; }

 private:
  void Next() {
    if (next_ < stream_.messages.size()) {
      this->StartWrite(&stream_.messages[next_++]);
    } else if (stream_.hold) {
      Hold();
    } else {
      this->Finish(stream_.end);
    }
  }

  void Hold() {
    if (stream_.on_hold) stream_.on_hold();
    const std::lock_guard lock(mutex_);
    holding_ = true;
    if (cancelled_) this->Finish(grpc::Status::CANCELLED);
  }

  Stream<Message> stream_;
  size_t next_ = 0;
  // The caller may go away just as the stream begins to hold.
  std::mutex mutex_;
  bool holding_ = false;
  bool cancelled_ = false;
};

grpc::Status NotScripted() {
  return grpc::Status(grpc::StatusCode::UNIMPLEMENTED, "the test has no script for this method");
}

template <typename Request, typename Response>
ServerUnaryReactor* Answer(CallbackServerContext* context,
                           const UnaryScript<Request, Response>& script, const Request* request,
                           Response* response) {
  ServerUnaryReactor* const reactor = context->DefaultReactor();
  const auto answer = script.Get();
  reactor->Finish(answer != nullptr ? (*answer)(*request, response) : NotScripted());
  return reactor;
}

template <typename Request, typename Message>
ServerWriteReactor<Message>* Play(const StreamScript<Request, Message>& script,
                                  const Request* request) {
  const auto play = script.Get();
  return new StreamReactor<Message>(
      play != nullptr ? (*play)(*request) : Stream<Message>{.messages = {}, .end = NotScripted()});
}

class VideoService final : public wan::v1::VideoGeneration::CallbackService {
 public:
  explicit VideoService(const Scripts& scripts) : scripts_(scripts) {}

  ServerWriteReactor<wan::v1::Event>* Generate(CallbackServerContext*,
                                               const wan::v1::GenerateRequest* request) override {
    return Play(scripts_.generate, request);
  }
  ServerUnaryReactor* GetUsage(CallbackServerContext* context,
                               const wan::v1::GetUsageRequest* request,
                               wan::v1::Usage* response) override {
    return Answer(context, scripts_.get_usage, request, response);
  }
  ServerUnaryReactor* CreateJob(CallbackServerContext* context,
                                const wan::v1::CreateJobRequest* request,
                                wan::v1::Job* response) override {
    return Answer(context, scripts_.create_job, request, response);
  }
  ServerUnaryReactor* SubmitBatch(CallbackServerContext* context,
                                  const wan::v1::SubmitBatchRequest* request,
                                  wan::v1::SubmitBatchResponse* response) override {
    return Answer(context, scripts_.submit_batch, request, response);
  }
  ServerUnaryReactor* GetJob(CallbackServerContext* context, const wan::v1::GetJobRequest* request,
                             wan::v1::Job* response) override {
    return Answer(context, scripts_.get_job, request, response);
  }
  ServerUnaryReactor* ListJobs(CallbackServerContext* context,
                               const wan::v1::ListJobsRequest* request,
                               wan::v1::ListJobsResponse* response) override {
    return Answer(context, scripts_.list_jobs, request, response);
  }
  ServerUnaryReactor* CancelJob(CallbackServerContext* context,
                                const wan::v1::CancelJobRequest* request,
                                wan::v1::Job* response) override {
    return Answer(context, scripts_.cancel_job, request, response);
  }
  ServerUnaryReactor* Quote(CallbackServerContext* context, const wan::v1::QuoteRequest* request,
                            wan::v1::QuoteResponse* response) override {
    return Answer(context, scripts_.quote, request, response);
  }
  ServerUnaryReactor* DeleteJob(CallbackServerContext* context,
                                const wan::v1::DeleteJobRequest* request,
                                google::protobuf::Empty* response) override {
    return Answer(context, scripts_.delete_job, request, response);
  }
  ServerWriteReactor<wan::v1::Event>* WatchJob(CallbackServerContext*,
                                               const wan::v1::WatchJobRequest* request) override {
    return Play(scripts_.watch_job, request);
  }
  ServerWriteReactor<wan::v1::DownloadArtifactResponse>* DownloadArtifact(
      CallbackServerContext*, const wan::v1::DownloadArtifactRequest* request) override {
    return Play(scripts_.download, request);
  }
  ServerUnaryReactor* GetReport(CallbackServerContext* context,
                                const wan::v1::GetReportRequest* request,
                                wan::v1::JobReport* response) override {
    return Answer(context, scripts_.get_report, request, response);
  }
  ServerUnaryReactor* GetReceipt(CallbackServerContext* context,
                                 const wan::v1::GetReceiptRequest* request,
                                 wan::v1::Receipt* response) override {
    return Answer(context, scripts_.get_receipt, request, response);
  }

 private:
  const Scripts& scripts_;
};

class ModelService final : public wan::v1::ModelManagement::CallbackService {
 public:
  explicit ModelService(const Scripts& scripts) : scripts_(scripts) {}

  ServerUnaryReactor* ListModels(CallbackServerContext* context,
                                 const wan::v1::ListModelsRequest* request,
                                 wan::v1::ListModelsResponse* response) override {
    return Answer(context, scripts_.list_models, request, response);
  }
  ServerUnaryReactor* GetModel(CallbackServerContext* context,
                               const wan::v1::GetModelRequest* request,
                               wan::v1::Model* response) override {
    return Answer(context, scripts_.get_model, request, response);
  }
  ServerUnaryReactor* LoadModel(CallbackServerContext* context,
                                const wan::v1::LoadModelRequest* request,
                                wan::v1::Model* response) override {
    return Answer(context, scripts_.load_model, request, response);
  }
  ServerUnaryReactor* UnloadModel(CallbackServerContext* context,
                                  const wan::v1::UnloadModelRequest* request,
                                  wan::v1::Model* response) override {
    return Answer(context, scripts_.unload_model, request, response);
  }
  ServerUnaryReactor* WarmupModel(CallbackServerContext* context,
                                  const wan::v1::WarmupModelRequest* request,
                                  wan::v1::Model* response) override {
    return Answer(context, scripts_.warmup_model, request, response);
  }

 private:
  const Scripts& scripts_;
};

class TelemetryService final : public wan::v1::Telemetry::CallbackService {
 public:
  explicit TelemetryService(const Scripts& scripts) : scripts_(scripts) {}

  ServerWriteReactor<wan::v1::WatchDevicesResponse>* WatchDevices(
      CallbackServerContext*, const wan::v1::WatchDevicesRequest* request) override {
    return Play(scripts_.watch_devices, request);
  }
  ServerUnaryReactor* GetServerInfo(CallbackServerContext* context,
                                    const wan::v1::GetServerInfoRequest* request,
                                    wan::v1::ServerInfo* response) override {
    return Answer(context, scripts_.get_server_info, request, response);
  }

 private:
  const Scripts& scripts_;
};

class AdministrationService final : public wan::v1::Administration::CallbackService {
 public:
  explicit AdministrationService(const Scripts& scripts) : scripts_(scripts) {}

  ServerUnaryReactor* Drain(CallbackServerContext* context, const wan::v1::DrainRequest* request,
                            wan::v1::DrainResponse* response) override {
    return Answer(context, scripts_.drain, request, response);
  }
  ServerUnaryReactor* Undrain(CallbackServerContext* context,
                              const wan::v1::UndrainRequest* request,
                              wan::v1::UndrainResponse* response) override {
    return Answer(context, scripts_.undrain, request, response);
  }

 private:
  const Scripts& scripts_;
};

class HealthService final : public grpc::health::v1::Health::CallbackService {
 public:
  explicit HealthService(const Scripts& scripts) : scripts_(scripts) {}

  ServerUnaryReactor* Check(CallbackServerContext* context,
                            const grpc::health::v1::HealthCheckRequest* /*request*/,
                            grpc::health::v1::HealthCheckResponse* response) override {
    ServerUnaryReactor* const reactor = context->DefaultReactor();
    const auto status = scripts_.health.Get();
    if (status != nullptr) {
      response->set_status(
          static_cast<grpc::health::v1::HealthCheckResponse::ServingStatus>((*status)()));
    }
    const auto why = scripts_.not_serving.Get();
    if (why != nullptr) context->AddTrailingMetadata("wan-not-serving-bin", (*why)());
    reactor->Finish(status != nullptr ? grpc::Status::OK : NotScripted());
    return reactor;
  }

 private:
  const Scripts& scripts_;
};

}  // namespace

struct ScriptedServer::Services {
  explicit Services(const Scripts& scripts)
      : video(scripts),
        model(scripts),
        telemetry(scripts),
        administration(scripts),
        health(scripts) {}

  VideoService video;
  ModelService model;
  TelemetryService telemetry;
  AdministrationService administration;
  HealthService health;
  std::unique_ptr<grpc::Server> server;
};

ScriptedServer::ScriptedServer() : services_(std::make_unique<Services>(scripts)) { Listen(); }

void ScriptedServer::Listen() {
  grpc::ServerBuilder builder;
  builder.AddListeningPort(address(), grpc::InsecureServerCredentials(), &port_);
  builder.SetMaxReceiveMessageSize(64 << 20);
  builder.RegisterService(&services_->video);
  builder.RegisterService(&services_->model);
  builder.RegisterService(&services_->telemetry);
  builder.RegisterService(&services_->administration);
  builder.RegisterService(&services_->health);
  services_->server = builder.BuildAndStart();
}

ScriptedServer::~ScriptedServer() { Stop(); }

void ScriptedServer::Stop() {
  if (services_->server == nullptr) return;
  // Calls that still hold end at once.
  services_->server->Shutdown(std::chrono::system_clock::now());
  services_->server->Wait();
  services_->server.reset();
}

void ScriptedServer::Restart() { Listen(); }

std::string ScriptedServer::address() const { return "127.0.0.1:" + std::to_string(port_); }

grpc::Status ErrorWith(grpc::StatusCode code, const std::string& message,
                       const std::vector<const google::protobuf::Message*>& details) {
  google::rpc::Status status;
  status.set_code(code);
  status.set_message(message);
  for (const google::protobuf::Message* detail : details) status.add_details()->PackFrom(*detail);
  return grpc::Status(code, message, status.SerializeAsString());
}

}  // namespace wan::fakes
