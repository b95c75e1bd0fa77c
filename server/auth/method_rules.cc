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
  static const auto* const rules = new std::vector<MethodRule>{
      {"/wan.v1.VideoGeneration/Generate", Role::kUser, kAudited},
      {"/wan.v1.VideoGeneration/CreateJob", Role::kUser, kAudited},
      {"/wan.v1.VideoGeneration/GetJob", Role::kViewer, kNotAudited, "name", kOwned},
      {"/wan.v1.VideoGeneration/ListJobs", Role::kViewer, kNotAudited},
      {"/wan.v1.VideoGeneration/SubmitBatch", Role::kUser, kAudited},
      {"/wan.v1.VideoGeneration/Quote", Role::kUser, kNotAudited},
      {"/wan.v1.VideoGeneration/UpdateJob", Role::kUser, kAudited, "job.name", kOwned},
      {"/wan.v1.VideoGeneration/DeleteJob", Role::kUser, kAudited, "name", kOwned},
      {"/wan.v1.VideoGeneration/DeleteArtifact", Role::kUser, kAudited, "name", kOwned},
      {"/wan.v1.VideoGeneration/CancelJob", Role::kUser, kAudited, "name", kOwned},
      {"/wan.v1.VideoGeneration/WatchJob", Role::kViewer, kNotAudited, "name", kOwned},
      {"/wan.v1.VideoGeneration/DownloadArtifact", Role::kViewer, kAudited, "name", kOwned},
      {"/wan.v1.VideoGeneration/GetReport", Role::kViewer, kNotAudited, "job", kOwned},
      {"/wan.v1.VideoGeneration/GetReceipt", Role::kViewer, kNotAudited, "job", kOwned},
      {"/wan.v1.VideoGeneration/GetUsage", Role::kViewer, kNotAudited, "principal"},
      {"/wan.v1.ModelManagement/ListModels", Role::kAdmin, kNotAudited},
      {"/wan.v1.ModelManagement/GetModel", Role::kAdmin, kNotAudited, "name"},
      {"/wan.v1.ModelManagement/WatchModel", Role::kAdmin, kNotAudited, "name"},
      {"/wan.v1.ModelManagement/LoadModel", Role::kAdmin, kAudited, "name"},
      {"/wan.v1.ModelManagement/UnloadModel", Role::kAdmin, kAudited, "name"},
      {"/wan.v1.ModelManagement/WarmupModel", Role::kAdmin, kAudited, "name"},
      {"/wan.v1.Telemetry/WatchDevices", Role::kViewer, kNotAudited},
      {"/wan.v1.Telemetry/GetServerInfo", Role::kViewer, kNotAudited},
      {"/wan.v1.Administration/Drain", Role::kAdmin, kAudited},
      {"/wan.v1.Administration/Undrain", Role::kAdmin, kAudited},
      {"/grpc.health.v1.Health/Check", Role::kViewer, kNotAudited},
      {"/grpc.health.v1.Health/Watch", Role::kViewer, kNotAudited},
      {"/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", Role::kViewer, kNotAudited},
      {"/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", Role::kViewer,
       kNotAudited},
      {"POST /v1/videos", Role::kUser, kAudited},
      {"GET /v1/videos", Role::kViewer, kNotAudited},
      {"GET /v1/videos/{id}", Role::kViewer, kNotAudited, "id", kOwned},
      {"GET /v1/videos/{id}/content", Role::kViewer, kAudited, "id", kOwned},
      {"DELETE /v1/videos/{id}", Role::kUser, kAudited, "id", kOwned},
      // Only the names of models that are ready.
      {"GET /v1/models", Role::kViewer, kNotAudited},
      {"GET /v1/models/{id}", Role::kViewer, kNotAudited},
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
