#include "tests/server/rpc/reflection.h"

#include <grpcpp/client_context.h>

#include "grpc/reflection/v1/reflection.grpc.pb.h"
#include "grpc/reflection/v1alpha/reflection.grpc.pb.h"

namespace wan::server {
namespace {

namespace v1 = grpc::reflection::v1;
namespace v1alpha = grpc::reflection::v1alpha;

// One question of a conversation of several, so that answers are seen not to run into each other.
template <typename Api, typename Request, typename Response>
Response AskTwice(const std::shared_ptr<grpc::Channel>& channel, const Request& request) {
  const auto stub = Api::NewStub(channel);
  grpc::ClientContext context;
  const auto stream = stub->ServerReflectionInfo(&context);
  Response response;
  for (int i = 0; i < 2; ++i) {
    response.Clear();
    if (!stream->Write(request) || !stream->Read(&response)) return {};
  }
  stream->WritesDone();
  return stream->Finish().ok() ? response : Response();
}

template <typename Request, typename Ask>
auto ListWith(Ask ask) {
  Request request;
  request.set_list_services("");
  std::vector<std::string> names;
  const auto response = ask(request);
  for (const auto& service : response.list_services_response().service()) {
    names.push_back(service.name());
  }
  return names;
}

template <typename Request, typename Ask>
std::vector<std::string> FilesWith(const std::string& symbol, Ask ask) {
  Request request;
  request.set_file_containing_symbol(symbol);
  const auto response = ask(request);
  const auto& files = response.file_descriptor_response().file_descriptor_proto();
  return {files.begin(), files.end()};
}

auto AskerV1(const std::shared_ptr<grpc::Channel>& channel) {
  return [channel](const v1::ServerReflectionRequest& request) {
    return AskTwice<v1::ServerReflection, v1::ServerReflectionRequest,
                    v1::ServerReflectionResponse>(channel, request);
  };
}

auto AskerV1Alpha(const std::shared_ptr<grpc::Channel>& channel) {
  return [channel](const v1alpha::ServerReflectionRequest& request) {
    return AskTwice<v1alpha::ServerReflection, v1alpha::ServerReflectionRequest,
                    v1alpha::ServerReflectionResponse>(channel, request);
  };
}

}  // namespace

std::vector<std::string> ListServices(const std::shared_ptr<grpc::Channel>& channel,
                                      ReflectionVersion version) {
  return version == ReflectionVersion::kV1
             ? ListWith<v1::ServerReflectionRequest>(AskerV1(channel))
             : ListWith<v1alpha::ServerReflectionRequest>(AskerV1Alpha(channel));
}

std::vector<std::string> FilesOf(const std::shared_ptr<grpc::Channel>& channel,
                                 const std::string& symbol, ReflectionVersion version) {
  return version == ReflectionVersion::kV1
             ? FilesWith<v1::ServerReflectionRequest>(symbol, AskerV1(channel))
             : FilesWith<v1alpha::ServerReflectionRequest>(symbol, AskerV1Alpha(channel));
}

}  // namespace wan::server
