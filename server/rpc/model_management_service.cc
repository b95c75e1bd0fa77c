#include <memory>
#include <stop_token>
#include <utility>
#include <vector>

#include "server/conversion/convert.h"
#include "server/jobs/model_registry.h"
#include "server/rpc/call_service.h"
#include "server/rpc/services.h"
#include "wan/v1/model_management.grpc.pb.h"

namespace wan::server {
namespace {

// Answers a call whose work ends with its caller. Deletes itself.
class CancellableReactor final : public grpc::ServerUnaryReactor {
 public:
  // Asks for a stop when the caller has gone, or has cancelled the call.
  std::stop_token stop_token() const { return stop_.get_token(); }

  void OnCancel() override { stop_.request_stop(); }
  void OnDone() override { delete this; }

 private:
  std::stop_source stop_;
};

class ModelManagementService final : public CallService {
 public:
  ModelManagementService(ModelRegistry& models, Admission& admission, WorkerPool& pool)
      : CallService(wan::v1::ModelManagement::service_full_name(), admission, pool),
        models_(models) {
    AddUnary<wan::v1::ListModelsRequest, wan::v1::ListModelsResponse>(
        "ListModels", [this](const wan::v1::ListModelsRequest& /*request*/) {
          wan::v1::ListModelsResponse listed;
          for (wan::v1::Model& model : models_.List()) *listed.add_models() = std::move(model);
          return absl::StatusOr<wan::v1::ListModelsResponse>(std::move(listed));
        });
    AddUnaryLater<wan::v1::LoadModelRequest, wan::v1::Model>(
        "LoadModel", [this](grpc::CallbackServerContext& context, const auto& admitted,
                            wan::v1::Model* response) {
          grpc::ServerUnaryReactor* const reactor = context.DefaultReactor();
          const ModelRegistry::Done answer = AnswerWhenDone(reactor, response);
          absl::StatusOr<ModelSpec> spec = ToModelSpec(admitted.message);
          if (spec.ok()) {
            models_.Load(*std::move(spec), answer);
          } else {
            answer(spec.status());
          }
          return reactor;
        });
    AddUnaryLater<wan::v1::UnloadModelRequest, wan::v1::Model>(
        "UnloadModel", [this](grpc::CallbackServerContext& context, const auto& admitted,
                              wan::v1::Model* response) {
          grpc::ServerUnaryReactor* const reactor = context.DefaultReactor();
          models_.Unload(admitted.message.name(), AnswerWhenDone(reactor, response));
          return reactor;
        });
    AddUnaryLater<wan::v1::WarmupModelRequest, wan::v1::Model>(
        "WarmupModel", [this](grpc::CallbackServerContext& /*context*/, const auto& admitted,
                              wan::v1::Model* response) {
          auto* const reactor = new CancellableReactor;
          std::vector<VideoShape> shapes;
          for (const wan::v1::Shape& shape : admitted.message.shapes()) {
            shapes.push_back(ToVideoShape(shape));
          }
          // Planning the shapes takes milliseconds, which gRPC's threads are not for.
          this->pool().Post([this, reactor, name = admitted.message.name(),
                             shapes = std::move(shapes), response] {
            models_.Warmup(name, shapes, AnswerWhenDone(reactor, response), reactor->stop_token());
          });
          return reactor;
        });
  }

 private:
  // Loading takes minutes: the executor's thread answers, and no thread waits for it.
  static ModelRegistry::Done AnswerWhenDone(grpc::ServerUnaryReactor* reactor,
                                            wan::v1::Model* response) {
    return [reactor, response](absl::StatusOr<wan::v1::Model> model) {
      if (model.ok()) *response = std::move(*model);
      reactor->Finish(ToGrpcStatus(model.status()));
    };
  }

  ModelRegistry& models_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeModelManagementService(ModelRegistry& models,
                                                          Admission& admission, WorkerPool& pool) {
  return std::make_unique<ModelManagementService>(models, admission, pool);
}

}  // namespace wan::server
