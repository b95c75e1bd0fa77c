#include "tests/server/rpc/reflection.h"

#include <grpcpp/client_context.h>
#include <grpcpp/completion_queue.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/support/byte_buffer.h>

#include <vector>

namespace wan::server {
namespace {

constexpr char kMethod[] = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo";
// ServerReflectionRequest{list_services: ""}: field 7, length 0.
constexpr char kListServices[] = {0x3A, 0x00};

void Await(grpc::CompletionQueue& queue) {
  void* tag = nullptr;
  bool ok = false;
  queue.Next(&tag, &ok);
}

}  // namespace

std::string ListServices(const std::shared_ptr<grpc::Channel>& channel) {
  grpc::GenericStub stub(channel);
  grpc::ClientContext context;
  grpc::CompletionQueue queue;
  const auto call = stub.PrepareCall(&context, kMethod, &queue);
  call->StartCall(nullptr);
  Await(queue);
  const grpc::Slice slice(kListServices, sizeof(kListServices));
  call->Write(grpc::ByteBuffer(&slice, 1), nullptr);
  Await(queue);
  grpc::ByteBuffer answer;
  call->Read(&answer, nullptr);
  Await(queue);
  call->WritesDone(nullptr);
  Await(queue);
  grpc::Status status;
  call->Finish(&status, nullptr);
  Await(queue);
  std::vector<grpc::Slice> slices;
  std::string bytes;
  if (answer.Dump(&slices).ok()) {
    for (const grpc::Slice& part : slices) {
      bytes.append(reinterpret_cast<const char*>(part.begin()), part.size());
    }
  }
  return bytes;
}

}  // namespace wan::server
