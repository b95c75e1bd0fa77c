#include "server/auth/method_rules.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

namespace wan::server {
namespace {

constexpr bool kAudited = true;
constexpr bool kNotAudited = false;
constexpr bool kOwned = true;

}  // namespace

const std::vector<MethodRule>& MethodRules() {
  using enum WorkClass;
  static const auto* const rules = new std::vector<MethodRule>{
      {"/wan.v1.VideoGeneration/Generate", Role::kUser, kPlans, kAudited},
      {"/wan.v1.VideoGeneration/CreateJob", Role::kUser, kPlans, kAudited},
      {"/wan.v1.VideoGeneration/GetJob", Role::kViewer, kQuick, kNotAudited, "name", kOwned},
      {"/wan.v1.VideoGeneration/ListJobs", Role::kViewer, kStore, kNotAudited},
      {"/wan.v1.VideoGeneration/SubmitBatch", Role::kUser, kPlans, kAudited},
      {"/wan.v1.VideoGeneration/Quote", Role::kUser, kPlans, kNotAudited},
      {"/wan.v1.VideoGeneration/UpdateJob", Role::kUser, kStore, kAudited, "job.name", kOwned},
      {"/wan.v1.VideoGeneration/DeleteJob", Role::kUser, kStore, kAudited, "name", kOwned},
      {"/wan.v1.VideoGeneration/DeleteArtifact", Role::kUser, kStore, kAudited, "name", kOwned},
      {"/wan.v1.VideoGeneration/CancelJob", Role::kUser, kQuick, kAudited, "name", kOwned},
      {"/wan.v1.VideoGeneration/WatchJob", Role::kViewer, kQuick, kNotAudited, "name", kOwned},
      {"/wan.v1.VideoGeneration/DownloadArtifact", Role::kViewer, kFiles, kAudited, "name", kOwned},
      {"/wan.v1.VideoGeneration/GetReport", Role::kViewer, kStore, kNotAudited, "job", kOwned},
      {"/wan.v1.VideoGeneration/GetReceipt", Role::kViewer, kStore, kNotAudited, "job", kOwned},
      {"/wan.v1.VideoGeneration/GetUsage", Role::kViewer, kStore, kNotAudited, "principal"},
      {"/wan.v1.ModelManagement/ListModels", Role::kAdmin, kQuick, kNotAudited},
      {"/wan.v1.ModelManagement/GetModel", Role::kAdmin, kQuick, kNotAudited, "name"},
      {"/wan.v1.ModelManagement/WatchModel", Role::kAdmin, kQuick, kNotAudited, "name"},
      {"/wan.v1.ModelManagement/LoadModel", Role::kAdmin, kPlans, kAudited, "name"},
      {"/wan.v1.ModelManagement/UnloadModel", Role::kAdmin, kQuick, kAudited, "name"},
      {"/wan.v1.ModelManagement/WarmupModel", Role::kAdmin, kPlans, kAudited, "name"},
      {"/wan.v1.Telemetry/WatchDevices", Role::kViewer, kQuick, kNotAudited},
      {"/wan.v1.Telemetry/GetServerInfo", Role::kViewer, kQuick, kNotAudited},
      {"/wan.v1.Administration/Drain", Role::kAdmin, kStore, kAudited},
      {"/wan.v1.Administration/Undrain", Role::kAdmin, kStore, kAudited},
      {"/grpc.health.v1.Health/Check", Role::kViewer, kQuick, kNotAudited},
      {"/grpc.health.v1.Health/Watch", Role::kViewer, kQuick, kNotAudited},
      {"/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", Role::kViewer, kQuick,
       kNotAudited},
      {"/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", Role::kViewer, kQuick,
       kNotAudited},
      // Everybody may read the page and the description of the API, because they are the same files
      // on every server.
      {.path = "GET /", .least = Role::kViewer, .audited = kNotAudited, .open = true},
      {.path = "GET /openapi.json", .least = Role::kViewer, .audited = kNotAudited, .open = true},
      {"GET /health", Role::kViewer, kQuick, kNotAudited},
      {"GET /v1/server", Role::kViewer, kStore, kNotAudited},
      {"POST /v1/videos/quote", Role::kUser, kPlans, kNotAudited},
      {"POST /v1/videos", Role::kUser, kPlans, kAudited},
      {"GET /v1/videos", Role::kViewer, kStore, kNotAudited},
      {"GET /v1/videos/{id}", Role::kViewer, kQuick, kNotAudited, "id", kOwned},
      {"GET /v1/videos/{id}/events", Role::kViewer, kQuick, kNotAudited, "id", kOwned},
      {"GET /v1/videos/{id}/report", Role::kViewer, kStore, kNotAudited, "id", kOwned},
      {"GET /v1/videos/{id}/content", Role::kViewer, kFiles, kAudited, "id", kOwned},
      {"DELETE /v1/videos/{id}", Role::kUser, kStore, kAudited, "id", kOwned},
      // A viewer may list the models, because the answer has only the names of those that are
      // READY.
      {"GET /v1/models", Role::kViewer, kQuick, kNotAudited},
      {"GET /v1/models/{id}", Role::kViewer, kQuick, kNotAudited},
  };
  return *rules;
}

const MethodRule* FindMethodRule(std::string_view path) {
  for (const MethodRule& rule : MethodRules()) {
    if (rule.path == path) return &rule;
  }
  return nullptr;
}

std::string FieldText(const google::protobuf::Message& request, std::string_view path) {
  const google::protobuf::Message* message = &request;
  for (;;) {
    const size_t dot = path.find('.');
    const auto* const field =
        message->GetDescriptor()->FindFieldByName(std::string(path.substr(0, dot)));
    const auto* const reflection = message->GetReflection();
    if (dot == std::string_view::npos) return reflection->GetString(*message, field);
    message = &reflection->GetMessage(*message, field);
    path.remove_prefix(dot + 1);
  }
}

}  // namespace wan::server
