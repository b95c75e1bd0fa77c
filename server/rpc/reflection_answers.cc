#include "server/rpc/reflection_answers.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>
#include <grpcpp/support/status.h>

#include <set>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"

namespace wan::server {
namespace {

using google::protobuf::DescriptorPool;
using google::protobuf::FileDescriptor;
using Question = grpc::reflection::v1::ServerReflectionRequest;
using Response = grpc::reflection::v1::ServerReflectionResponse;

// Adds a file after all files that it imports, each file once.
void AddFile(const FileDescriptor& file, std::set<std::string>& added,
             google::protobuf::RepeatedPtrField<std::string>& files) {
  if (!added.insert(file.name()).second) return;
  for (int i = 0; i < file.dependency_count(); ++i) AddFile(*file.dependency(i), added, files);
  google::protobuf::FileDescriptorProto proto;
  file.CopyTo(&proto);
  proto.SerializeToString(files.Add());
}

const FileDescriptor* FileOf(const DescriptorPool& pool, const Question& question) {
  switch (question.message_request_case()) {
    case Question::kFileByFilename:
      return pool.FindFileByName(question.file_by_filename());
    case Question::kFileContainingSymbol:
      return pool.FindFileContainingSymbol(question.file_containing_symbol());
    case Question::kFileContainingExtension: {
      const auto& wanted = question.file_containing_extension();
      const auto* const type = pool.FindMessageTypeByName(wanted.containing_type());
      const auto* const extension =
          type == nullptr ? nullptr : pool.FindExtensionByNumber(type, wanted.extension_number());
      return extension == nullptr ? nullptr : extension->file();
    }
    default:
      return nullptr;
  }
}

// Returns the name of the field that the request sets, and the field's text.
std::pair<std::string_view, std::string_view> NameIn(const Question& question) {
  switch (question.message_request_case()) {
    case Question::kFileByFilename:
      return {"file_by_filename", question.file_by_filename()};
    case Question::kFileContainingSymbol:
      return {"file_containing_symbol", question.file_containing_symbol()};
    case Question::kFileContainingExtension:
      return {"file_containing_extension.containing_type",
              question.file_containing_extension().containing_type()};
    case Question::kAllExtensionNumbersOfType:
      return {"all_extension_numbers_of_type", question.all_extension_numbers_of_type()};
    case Question::kListServices:
      return {"list_services", question.list_services()};
    case Question::MESSAGE_REQUEST_NOT_SET:
      break;
  }
  return {};
}

void Fail(grpc::StatusCode code, const std::string& message, Response& response) {
  response.mutable_error_response()->set_error_code(code);
  response.mutable_error_response()->set_error_message(message);
}

}  // namespace

Response AnswerReflection(const std::vector<std::string>& services, const Question& question) {
  const DescriptorPool& pool = *DescriptorPool::generated_pool();
  Response response;
  response.set_valid_host(question.host());
  *response.mutable_original_request() = question;
  const auto [field, asked] = NameIn(question);
  if (asked.size() > kMostReflectedNameBytes) {
    Fail(grpc::StatusCode::INVALID_ARGUMENT,
         absl::StrCat(std::string(field), ": is ", asked.size(), " bytes long; must be at most ",
                      kMostReflectedNameBytes),
         response);
    return response;
  }
  switch (question.message_request_case()) {
    case Question::kListServices:
      for (const std::string& service : services) {
        response.mutable_list_services_response()->add_service()->set_name(service);
      }
      break;
    case Question::kAllExtensionNumbersOfType: {
      const std::string& name = question.all_extension_numbers_of_type();
      const auto* const type = pool.FindMessageTypeByName(name);
      if (type == nullptr) {
        Fail(grpc::StatusCode::NOT_FOUND, "there is no such type", response);
        break;
      }
      std::vector<const google::protobuf::FieldDescriptor*> extensions;
      pool.FindAllExtensions(type, &extensions);
      auto& numbers = *response.mutable_all_extension_numbers_response();
      numbers.set_base_type_name(name);
      for (const auto* const extension : extensions) {
        numbers.add_extension_number(extension->number());
      }
      break;
    }
    case Question::MESSAGE_REQUEST_NOT_SET:
      Fail(grpc::StatusCode::INVALID_ARGUMENT, "message_request is not set", response);
      break;
    default: {
      const FileDescriptor* const file = FileOf(pool, question);
      if (file == nullptr) {
        Fail(grpc::StatusCode::NOT_FOUND, "there is no such file, symbol or extension", response);
        break;
      }
      std::set<std::string> added;
      AddFile(*file, added,
              *response.mutable_file_descriptor_response()->mutable_file_descriptor_proto());
    }
  }
  return response;
}

}  // namespace wan::server
