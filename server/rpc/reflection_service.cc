#include "server/rpc/reflection_service.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>
#include <grpcpp/support/server_callback.h>

#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "grpc/health/v1/health.pb.h"
#include "grpc/reflection/v1/reflection.grpc.pb.h"
#include "grpc/reflection/v1alpha/reflection.grpc.pb.h"
#include "server/calls/gatekeeper.h"
#include "server/rpc/call_entry.h"
#include "server/rpc/status_conversion.h"
#include "wan/v1/administration.pb.h"
#include "wan/v1/model_management.pb.h"
#include "wan/v1/telemetry.pb.h"
#include "wan/v1/video_generation.pb.h"

namespace wan::server {
namespace {

using google::protobuf::DescriptorPool;
using google::protobuf::FileDescriptor;

// A file after all that it imports, each once.
void AddFile(const FileDescriptor& file, std::set<std::string>& added,
             google::protobuf::RepeatedPtrField<std::string>& files) {
  if (!added.insert(file.name()).second) return;
  for (int i = 0; i < file.dependency_count(); ++i) AddFile(*file.dependency(i), added, files);
  google::protobuf::FileDescriptorProto proto;
  file.CopyTo(&proto);
  proto.SerializeToString(files.Add());
}

template <typename Request>
const FileDescriptor* FileOf(const DescriptorPool& pool, const Request& request) {
  switch (request.message_request_case()) {
    case Request::kFileByFilename:
      return pool.FindFileByName(request.file_by_filename());
    case Request::kFileContainingSymbol:
      return pool.FindFileContainingSymbol(request.file_containing_symbol());
    case Request::kFileContainingExtension: {
      const auto& wanted = request.file_containing_extension();
      const auto* const type = pool.FindMessageTypeByName(wanted.containing_type());
      const auto* const extension =
          type == nullptr ? nullptr : pool.FindExtensionByNumber(type, wanted.extension_number());
      return extension == nullptr ? nullptr : extension->file();
    }
    default:
      return nullptr;
  }
}

template <typename Request, typename Response>
void Answer(const std::vector<std::string>& services, const Request& request, Response* response) {
  const DescriptorPool& pool = *DescriptorPool::generated_pool();
  response->Clear();
  response->set_valid_host(request.host());
  *response->mutable_original_request() = request;
  const auto fail = [&](grpc::StatusCode code, const char* message) {
    response->mutable_error_response()->set_error_code(code);
    response->mutable_error_response()->set_error_message(message);
  };
  switch (request.message_request_case()) {
    case Request::kListServices:
      for (const std::string& service : services) {
        response->mutable_list_services_response()->add_service()->set_name(service);
      }
      return;
    case Request::kAllExtensionNumbersOfType: {
      const std::string& name = request.all_extension_numbers_of_type();
      const auto* const type = pool.FindMessageTypeByName(name);
      if (type == nullptr) return fail(grpc::StatusCode::NOT_FOUND, "there is no such type");
      std::vector<const google::protobuf::FieldDescriptor*> extensions;
      pool.FindAllExtensions(type, &extensions);
      auto& numbers = *response->mutable_all_extension_numbers_response();
      numbers.set_base_type_name(name);
      for (const auto* const extension : extensions) {
        numbers.add_extension_number(extension->number());
      }
      return;
    }
    case Request::MESSAGE_REQUEST_NOT_SET:
      return fail(grpc::StatusCode::INVALID_ARGUMENT, "message_request is not set");
    default: {
      const FileDescriptor* const file = FileOf(pool, request);
      if (file == nullptr) {
        return fail(grpc::StatusCode::NOT_FOUND, "there is no such file, symbol or extension");
      }
      std::set<std::string> added;
      AddFile(*file, added,
              *response->mutable_file_descriptor_response()->mutable_file_descriptor_proto());
    }
  }
}

// Answers one question after the other until the caller has no more.
template <typename Request, typename Response>
class Conversation final : public grpc::ServerBidiReactor<Request, Response> {
 public:
  Conversation(const std::vector<std::string>& services, absl::StatusOr<std::shared_ptr<Call>> call)
      : services_(services) {
    if (call.ok()) {
      call_ = *std::move(call);
      this->StartRead(&request_);
    } else {
      this->Finish(ToGrpcStatus(call.status()));
    }
  }

 private:
  void OnReadDone(bool ok) override {
    if (!ok) {
      this->Finish(grpc::Status::OK);
      return;
    }
    Answer(services_, request_, &response_);
    this->StartWrite(&response_);
  }
  void OnWriteDone(bool ok) override {
    if (ok) {
      this->StartRead(&request_);
    } else {
      this->Finish(grpc::Status(grpc::StatusCode::CANCELLED, "the caller is gone"));
    }
  }
  void OnDone() override { delete this; }

  const std::vector<std::string>& services_;
  std::shared_ptr<Call> call_;
  Request request_;
  Response response_;
};

template <typename Api, typename Request, typename Response>
class ReflectionService final : public Api::CallbackService {
 public:
  ReflectionService(std::vector<std::string> services, const Gatekeeper& gatekeeper)
      : services_(std::move(services)),
        gatekeeper_(gatekeeper),
        path_(absl::StrCat("/", Api::service_full_name(), "/ServerReflectionInfo")) {}

  grpc::ServerBidiReactor<Request, Response>* ServerReflectionInfo(
      grpc::CallbackServerContext* context) override {
    return new Conversation<Request, Response>(services_, EnterCall(gatekeeper_, *context, path_));
  }

 private:
  const std::vector<std::string> services_;
  const Gatekeeper& gatekeeper_;
  const std::string path_;
};

}  // namespace

std::vector<std::unique_ptr<grpc::Service>> MakeReflectionServices(const Gatekeeper& gatekeeper) {
  namespace v1 = grpc::reflection::v1;
  namespace v1alpha = grpc::reflection::v1alpha;
  // Asking a message for its file also links the file, so whatever is listed is known.
  const FileDescriptor* const files[] = {
      wan::v1::GetJobRequest::descriptor()->file(),
      wan::v1::ListModelsRequest::descriptor()->file(),
      wan::v1::GetServerInfoRequest::descriptor()->file(),
      wan::v1::DrainRequest::descriptor()->file(),
      grpc::health::v1::HealthCheckRequest::descriptor()->file(),
      v1::ServerReflectionRequest::descriptor()->file(),
      v1alpha::ServerReflectionRequest::descriptor()->file(),
  };
  std::vector<std::string> services;
  for (const FileDescriptor* const file : files) {
    for (int i = 0; i < file->service_count(); ++i) {
      services.push_back(file->service(i)->full_name());
    }
  }
  std::vector<std::unique_ptr<grpc::Service>> made;
  made.push_back(
      std::make_unique<ReflectionService<v1::ServerReflection, v1::ServerReflectionRequest,
                                         v1::ServerReflectionResponse>>(services, gatekeeper));
  made.push_back(
      std::make_unique<
          ReflectionService<v1alpha::ServerReflection, v1alpha::ServerReflectionRequest,
                            v1alpha::ServerReflectionResponse>>(std::move(services), gatekeeper));
  return made;
}

}  // namespace wan::server
