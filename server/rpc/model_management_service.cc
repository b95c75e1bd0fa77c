#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/api/errors.h"
#include "server/calls/stream_heartbeat.h"
#include "server/conversion/convert.h"
#include "server/conversion/errors.h"
#include "server/conversion/names.h"
#include "server/jobs/model_operations.h"
#include "server/jobs/model_table.h"
#include "server/rpc/call_service.h"
#include "server/rpc/services.h"
#include "server/rpc/stream.h"
#include "wan/v1/model_management.grpc.pb.h"

namespace wan::server {
namespace {

// Sends the caller a model at once and whenever it changes.
class ModelStream final : public Stream<wan::v1::WatchModelResponse> {
 public:
  ModelStream(wan::v1::WatchModelRequest request, ModelTable& models,
              const HeartbeatOptions& heartbeat, const ServiceShared& shared)
      : Stream(shared.pool),
        request_(std::move(request)),
        models_(models),
        heartbeat_(heartbeat),
        stopping_(shared.stopping) {}

  ~ModelStream() override {
    if (watcher_.has_value()) models_.RemoveWatcher(*watcher_);
  }

 private:
  Next Produce(wan::v1::WatchModelResponse* response, absl::Status* status) override {
    if (!watcher_.has_value()) Subscribe();
    absl::StatusOr<wan::v1::Model> model = models_.Get(request_.name());
    // The table no longer knows a model whose first load failed. Send the last state of such a
    // model to callers that have watched the model before, and to those that watch one of its
    // operations.
    const absl::Status gone = model.status();
    if (!gone.ok() && !(last_.empty() && request_.operation().empty())) {
      model = models_.GetEnded(request_.name());
    }
    if (!model.ok()) {
      *status = gone;
      return Next::kEnd;
    }
    const wan::v1::ModelOperation* const operation = OperationOf(*model);
    if (operation == nullptr && !request_.operation().empty() && last_.empty()) {
      *status = OperationNotFound();
      return Next::kEnd;
    }
    std::string bytes = model->SerializeAsString();
    if (bytes != last_) {
      last_ = std::move(bytes);
      heartbeat_.MessageSent();
      *response->mutable_model() = *std::move(model);
      return Next::kMessage;
    }
    // If the model no longer lists the operation, the operation has ended and newer ones have
    // followed.
    if (!request_.operation().empty() && (operation == nullptr || operation->has_end_time())) {
      return Next::kEnd;
    }
    if (!gone.ok()) {
      *status = gone;
      return Next::kEnd;
    }
    if (stopping_.stop_requested()) {
      *status = ServerStoppingError();
      return Next::kEnd;
    }
    if (!heartbeat_.Due(WeakWake())) return Next::kPending;
    response->mutable_heartbeat();
    return Next::kMessage;
  }

  const wan::v1::ModelOperation* OperationOf(const wan::v1::Model& model) const {
    for (const wan::v1::ModelOperation& operation : model.operations()) {
      if (operation.name() == request_.operation()) return &operation;
    }
    return nullptr;
  }

  absl::Status OperationNotFound() const {
    return WithReason(
        absl::NotFoundError(absl::StrCat(
            "models/", std::string(BareModelName(request_.name())),
            " has no such operation: it would be one that the model's operations name")),
        kReasonOperationNotFound);
  }

  // Capture a weak pointer, so that neither the table nor the timer keeps the stream alive after
  // its call.
  std::function<void()> WeakWake() {
    return [weak = weak_from_this()] {
      if (const auto stream = weak.lock()) stream->Wake();
    };
  }

  void Subscribe() {
    watcher_ =
        models_.AddWatcher([wake = WeakWake(), name = std::string(BareModelName(request_.name()))](
                               const std::string& changed) {
          if (changed == name) wake();
        });
    on_stop_.emplace(stopping_, WeakWake());
  }

  const wan::v1::WatchModelRequest request_;
  ModelTable& models_;
  StreamHeartbeat heartbeat_;
  const std::stop_token stopping_;
  std::optional<int64_t> watcher_;
  std::optional<std::stop_callback<std::function<void()>>> on_stop_;
  std::string last_;  // the model that was sent last, serialized
};

class ModelManagementService final : public CallService {
 public:
  ModelManagementService(const ServiceShared& shared, ModelTable& models,
                         ModelOperations& operations)
      : CallService(wan::v1::ModelManagement::service_full_name(), shared),
        models_(models),
        operations_(operations) {
    AddUnary<wan::v1::ListModelsRequest, wan::v1::ListModelsResponse>(
        "ListModels",
        [this](const wan::v1::ListModelsRequest& request) { return models_.List(request); });
    AddUnary<wan::v1::GetModelRequest, wan::v1::Model>(
        "GetModel",
        [this](const wan::v1::GetModelRequest& request) { return models_.Get(request.name()); });
    AddStream<wan::v1::WatchModelRequest, wan::v1::WatchModelResponse>(
        "WatchModel", [this](grpc::CallbackServerContext& /*context*/, auto admitted) {
          return std::make_shared<ModelStream>(std::move(admitted.message), models_,
                                               this->heartbeat(), this->shared());
        });
    // Loading takes minutes, so the executor's thread answers and no other thread waits.
    AddUnaryLater<wan::v1::LoadModelRequest, wan::v1::Model>(
        "LoadModel", [this](grpc::CallbackServerContext& context, const auto& admitted,
                            Reply<wan::v1::Model> reply) {
          // Post the work, because checking the model's files may block.
          this->PostWork(context, admitted.call,
                         [this, reply, request = admitted.message](const absl::Status& turn) {
                           absl::StatusOr<ModelSpec> spec = turn.ok() ? ToModelSpec(request) : turn;
                           const absl::StatusOr<LoraEdits> edits = ToLoraEdits(request);
                           if (!spec.ok()) {
                             reply(spec.status());
                           } else if (!edits.ok()) {
                             reply(edits.status());
                           } else if (request.wait()) {
                             operations_.Load(*std::move(spec), reply, *edits);
                           } else {
                             reply(operations_.BeginLoad(*std::move(spec), *edits));
                           }
                         });
        });
    AddUnaryLater<wan::v1::UnloadModelRequest, wan::v1::Model>(
        "UnloadModel", [this](grpc::CallbackServerContext& /*context*/, const auto& admitted,
                              Reply<wan::v1::Model> reply) {
          operations_.Unload(admitted.message.name(), reply);
        });
    AddUnaryLater<wan::v1::WarmupModelRequest, wan::v1::Model>(
        "WarmupModel", [this](grpc::CallbackServerContext& context, const auto& admitted,
                              Reply<wan::v1::Model> reply) {
          std::vector<VideoShape> shapes;
          for (const wan::v1::Shape& shape : admitted.message.shapes()) {
            shapes.push_back(ToVideoShape(shape));
          }
          // Post the work, because planning the shapes takes milliseconds.
          this->PostWork(
              context, admitted.call,
              [this, reply, name = admitted.message.name(), wait = admitted.message.wait(),
               shapes = std::move(shapes)](const absl::Status& turn) {
                if (!turn.ok()) {
                  reply(turn);
                } else if (wait) {
                  operations_.Warmup(name, shapes, reply, reply.caller_gone());
                } else {
                  reply(operations_.BeginWarmup(name, shapes));
                }
              });
        });
  }

 private:
  ModelTable& models_;
  ModelOperations& operations_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeModelManagementService(const ServiceShared& shared,
                                                          ModelTable& models,
                                                          ModelOperations& operations) {
  return std::make_unique<ModelManagementService>(shared, models, operations);
}

}  // namespace wan::server
