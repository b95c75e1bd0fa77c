// How the methods of wan.v1 are entered: the gatekeeper lets the caller in, the request is
// admitted, then parsed, then worked on.
//
// The generated services leave the first two to gRPC 1.51, which parses whatever arrives and
// answers bytes that are no message with UNIMPLEMENTED.
#pragma once

#include <grpcpp/impl/rpc_service_method.h>
#include <grpcpp/impl/service_type.h>
#include <grpcpp/server_context.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/proto_buffer_reader.h>
#include <grpcpp/support/server_callback.h>

#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "engine/api/errors.h"
#include "server/calls/admission.h"
#include "server/calls/gatekeeper.h"
#include "server/calls/stall_watch.h"
#include "server/calls/worker_pool.h"
#include "server/rpc/call_entry.h"
#include "server/rpc/request_size.h"
#include "server/rpc/status_conversion.h"
#include "server/rpc/stream.h"

namespace wan::server {

// A request as it arrived.
struct ArrivedRequest {
  mutable grpc::ByteBuffer bytes;  // gRPC hands requests over as const
};

}  // namespace wan::server

namespace grpc {

template <>
class SerializationTraits<wan::server::ArrivedRequest> {
 public:
  static Status Deserialize(ByteBuffer* buffer, wan::server::ArrivedRequest* request) {
    request->bytes.Swap(buffer);
    return Status::OK;
  }
};

}  // namespace grpc

namespace wan::server {

// A request that has its place among those that are under way.
template <typename Request>
struct AdmittedRequest {
  Request message;
  Admission::Lease place;
  // Whoever answers the call ends it with the status of the answer, and sends what End returns.
  std::shared_ptr<Call> call = nullptr;
};

// A stream whose caller was let in, with what belongs to it until the call is over.
struct EnteredStream {
  std::shared_ptr<Call> call;
  Admission::Lease place;
  StallWatch::Options stall;
  std::function<void()> cancel;  // ends the call; for StallWatch
};

// Most bytes of a request beside its images: more than twice what any valid one has. It bounds what
// parsing takes, before anything is parsed.
inline constexpr int64_t kMaxPlainRequestBytes = int64_t{512} << 10;

// RESOURCE_EXHAUSTED (SERVER_BUSY), or INVALID_ARGUMENT if the bytes are no `Request`, or too many.
// The bytes are gone afterwards, one way or the other.
template <typename Request>
absl::StatusOr<AdmittedRequest<Request>> Admit(Admission& admission,
                                               const ArrivedRequest& arrived) {
  grpc::ByteBuffer bytes;
  bytes.Swap(&arrived.bytes);
  auto place = admission.Request(static_cast<int64_t>(bytes.Length()));
  if (!place.ok()) return place.status();
  if (bytes.Length() > static_cast<size_t>(kMaxPlainRequestBytes)) {
    grpc::ProtoBufferReader walked(&bytes);
    const auto field = walked.status().ok() ? FieldPastPlainBytes(*Request::descriptor(), walked,
                                                                  kMaxPlainRequestBytes)
                                            : std::nullopt;
    if (field.has_value()) {
      // As in every violation of a generation request, without the message around it.
      return InvalidFields(
          {{std::string(absl::StripPrefix(*field, "request.")),
            absl::StrCat("with it the request has more than ", kMaxPlainRequestBytes,
                         " bytes beside its images, the most it may")}});
    }
  }
  AdmittedRequest<Request> admitted{{}, *std::move(place)};
  grpc::ProtoBufferReader reader(&bytes);
  // An empty message has no bytes, and its reader no first block.
  const bool parsed = bytes.Length() == 0 ||
                      (reader.status().ok() && admitted.message.ParseFromZeroCopyStream(&reader));
  if (!parsed) {
    return absl::InvalidArgumentError(
        absl::StrCat("the request is not a valid ", Request::descriptor()->full_name(),
                     ": its bytes are damaged, or a text in it is not UTF-8"));
  }
  return admitted;
}

// A service whose methods are added by name.
class CallService : public grpc::Service {
 protected:
  // `name` is the service's full name. Gatekeeper, admission and pool must outlive the service.
  CallService(std::string_view name, const Gatekeeper& gatekeeper, Admission& admission,
              WorkerPool& pool)
      : name_(name), gatekeeper_(gatekeeper), admission_(admission), pool_(pool) {}

  // How long the reader of a stream may leave a message untaken before the call is cancelled.
  static constexpr absl::Duration kLongestStall = absl::Seconds(60);
  // Ends the streams of methods that are added after this when their readers stall. Both must
  // outlive the streams.
  void EndStalledStreams(Clock& clock, WakeTimer& timer) {
    stall_.emplace(StallWatch::Options{clock, timer, kLongestStall});
  }

  // `work` is (const Request&) -> absl::StatusOr<Response>, or (const Call&, const Request&) where
  // it needs to know who calls. It runs on the pool, and the answer is what it returns.
  template <typename Request, typename Response, typename Work>
  void AddUnary(std::string_view method, Work work) {
    AddUnaryLater<Request, Response>(
        method,
        [this, work = std::move(work)](grpc::CallbackServerContext& context,
                                       AdmittedRequest<Request> admitted, Response* response) {
          grpc::ServerUnaryReactor* const reactor = context.DefaultReactor();
          // Shared, because tasks are copyable.
          auto held = std::make_shared<AdmittedRequest<Request>>(std::move(admitted));
          const std::shared_ptr<Call> call = held->call;
          PostWork(context, *call,
                   [&work, held = std::move(held), call, reactor,
                    response](const absl::Status& turn) mutable {
                     const absl::Status allowed = turn.ok() ? call->CheckResource() : turn;
                     absl::StatusOr<Response> result =
                         allowed.ok() ? Answer<Response>(work, *call, held->message) : allowed;
                     held = nullptr;
                     if (result.ok()) *response = std::move(*result);
                     if (result.ok()) call->AboutMessage(*response);
                     reactor->Finish(ToGrpcStatus(call->End(result.status())));
                   });
          return reactor;
        });
  }

  // `begin` returns the call's reactor and sees to it that it is finished, with the response filled
  // if the status is OK. It runs on a thread of gRPC and does not block.
  template <typename Request, typename Response>
  void AddUnaryLater(std::string_view method,
                     std::function<grpc::ServerUnaryReactor*(grpc::CallbackServerContext& context,
                                                             AdmittedRequest<Request> admitted,
                                                             Response* response)>
                         begin) {
    Add(method, grpc::internal::RpcMethod::NORMAL_RPC,
        new grpc::internal::CallbackUnaryHandler<ArrivedRequest, Response>(
            [this, begin = std::move(begin), path = PathOf(method)](
                grpc::CallbackServerContext* context, const ArrivedRequest* arrived,
                Response* response) -> grpc::ServerUnaryReactor* {
              auto admitted = Enter<Request>(*context, path, *arrived);
              if (admitted.ok()) return begin(*context, *std::move(admitted), response);
              grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
              reactor->Finish(ToGrpcStatus(admitted.status()));
              return reactor;
            }));
  }

  // `make` returns the stream of a call.
  template <typename Request, typename Message>
  void AddStream(std::string_view method,
                 std::function<std::shared_ptr<Stream<Message>>(
                     grpc::CallbackServerContext& context, AdmittedRequest<Request> admitted)>
                     make) {
    Add(method, grpc::internal::RpcMethod::SERVER_STREAMING,
        new grpc::internal::CallbackServerStreamingHandler<ArrivedRequest, Message>(
            [this, make = std::move(make), path = PathOf(method)](
                grpc::CallbackServerContext* context,
                const ArrivedRequest* arrived) -> grpc::ServerWriteReactor<Message>* {
              using Refused = Refusal<grpc::ServerWriteReactor<Message>>;
              auto admitted = Enter<Request>(*context, path, *arrived);
              if (!admitted.ok()) return new Refused(admitted.status());
              const std::shared_ptr<Call> call = admitted->call;
              auto place = admission_.Stream();
              if (!place.ok()) return new Refused(call->End(place.status()));
              std::shared_ptr<Stream<Message>> stream = make(*context, *std::move(admitted));
              stream->Keep(*std::move(place));
              stream->Answer(call);
              if (stall_.has_value()) {
                stream->EndIfStalled(*stall_, [context] { context->TryCancel(); });
              }
              return Stream<Message>::Begin(std::move(stream));
            }));
  }

  // Posts work of a unary call that has not been finished, in the class of its method.
  void PostWork(const grpc::CallbackServerContext& context, const Call& call,
                WorkerPool::Task task) {
    pool_.Post(
        call.work(), call.party(), [&context] { return context.IsCancelled(); }, std::move(task));
  }

  // `make` returns the reactor of a call to which caller and server send messages in turn. It
  // runs on a thread of gRPC and does not block. After EndStalledStreams only.
  template <typename Message>
  void AddConversation(
      std::string_view method,
      std::function<grpc::ServerBidiReactor<ArrivedRequest, Message>*(EnteredStream entered)>
          make) {
    Add(method, grpc::internal::RpcMethod::BIDI_STREAMING,
        new grpc::internal::CallbackBidiHandler<ArrivedRequest, Message>(
            [this, make = std::move(make),
             path = PathOf(method)](grpc::CallbackServerContext* context)
                -> grpc::ServerBidiReactor<ArrivedRequest, Message>* {
              using Refused = Refusal<grpc::ServerBidiReactor<ArrivedRequest, Message>>;
              absl::StatusOr<std::shared_ptr<Call>> call = EnterCall(gatekeeper_, *context, path);
              if (!call.ok()) return new Refused(call.status());
              auto place = admission_.Stream();
              if (!place.ok()) return new Refused((*call)->End(place.status()));
              return make({*std::move(call), *std::move(place), *stall_,
                           [context] { context->TryCancel(); }});
            }));
  }

  Admission& admission() { return admission_; }
  WorkerPool& pool() { return pool_; }

 private:
  // A stream that ends before it has begun.
  template <typename Reactor>
  class Refusal final : public Reactor {
   public:
    explicit Refusal(const absl::Status& status) { this->Finish(ToGrpcStatus(status)); }

   private:
    void OnDone() override { delete this; }
  };

  template <typename Response, typename Work, typename Request>
  static absl::StatusOr<Response> Answer(const Work& work, const Call& call,
                                         const Request& request) {
    if constexpr (std::is_invocable_v<const Work&, const Call&, const Request&>) {
      return work(call, request);
    } else {
      return work(request);
    }
  }

  // Lets a call in, admits its request and parses it.
  template <typename Request>
  absl::StatusOr<AdmittedRequest<Request>> Enter(const grpc::CallbackServerContext& context,
                                                 const std::string& path,
                                                 const ArrivedRequest& arrived) {
    absl::StatusOr<std::shared_ptr<Call>> call = EnterCall(gatekeeper_, context, path);
    if (!call.ok()) return call.status();
    auto admitted = Admit<Request>(admission_, arrived);
    if (!admitted.ok()) return (*call)->End(admitted.status());
    (*call)->Read(admitted->message);
    admitted->call = *std::move(call);
    return admitted;
  }

  std::string PathOf(std::string_view method) const {
    return absl::StrCat("/", name_, "/", std::string(method));
  }

  void Add(std::string_view method, grpc::internal::RpcMethod::RpcType type,
           grpc::internal::MethodHandler* handler) {
    paths_.push_back(PathOf(method));
    auto* const added = new grpc::internal::RpcServiceMethod(paths_.back().c_str(), type, handler);
    added->SetServerApiType(grpc::internal::RpcServiceMethod::ApiType::CALL_BACK);
    AddMethod(added);
  }

  const std::string name_;
  const Gatekeeper& gatekeeper_;
  Admission& admission_;
  WorkerPool& pool_;
  std::optional<StallWatch::Options> stall_;
  std::list<std::string> paths_;  // gRPC keeps pointers to them
};

}  // namespace wan::server
