#include <memory>
#include <utility>
#include <vector>

#include "server/conversion/convert.h"
#include "server/jobs/model_registry.h"
#include "server/rpc/services.h"
#include "server/rpc/unary.h"
#include "wan/v1/model_management.grpc.pb.h"

namespace wan::server {
namespace {

class ModelManagementService final : public wan::v1::ModelManagement::CallbackService {
 public:
  ModelManagementService(ModelRegistry& models, WorkerPool& pool) : models_(models), pool_(pool) {}

  grpc::ServerUnaryReactor* ListModels(grpc::CallbackServerContext* context,
                                       const wan::v1::ListModelsRequest* /*request*/,
                                       wan::v1::ListModelsResponse* response) override {
    return Answer(context, pool_, response,
                  [this]() -> absl::StatusOr<wan::v1::ListModelsResponse> {
                    wan::v1::ListModelsResponse listed;
                    for (wan::v1::Model& model : models_.List())
                      *listed.add_models() = std::move(model);
                    return listed;
                  });
  }

  grpc::ServerUnaryReactor* LoadModel(grpc::CallbackServerContext* context,
                                      const wan::v1::LoadModelRequest* request,
                                      wan::v1::Model* response) override {
    grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
    models_.Load(ToModelSpec(*request), AnswerWhenDone(reactor, response));
    return reactor;
  }

  grpc::ServerUnaryReactor* UnloadModel(grpc::CallbackServerContext* context,
                                        const wan::v1::UnloadModelRequest* request,
                                        wan::v1::Model* response) override {
    grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
    models_.Unload(request->name(), AnswerWhenDone(reactor, response));
    return reactor;
  }

  grpc::ServerUnaryReactor* WarmupModel(grpc::CallbackServerContext* context,
                                        const wan::v1::WarmupModelRequest* request,
                                        wan::v1::Model* response) override {
    grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
    std::vector<VideoShape> shapes;
    for (const wan::v1::Shape& shape : request->shapes()) shapes.push_back(ToVideoShape(shape));
    models_.Warmup(request->name(), std::move(shapes), AnswerWhenDone(reactor, response));
    return reactor;
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
  WorkerPool& pool_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeModelManagementService(ModelRegistry& models, WorkerPool& pool) {
  return std::make_unique<ModelManagementService>(models, pool);
}

}  // namespace wan::server
