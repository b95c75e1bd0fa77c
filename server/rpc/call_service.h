// The base class of the services of wan.v1. For each call the class asks the gatekeeper, admits the
// request, parses the request and runs the method.
//
// The generated services are not used: with them gRPC 1.51 parses every request before the server
// can refuse the call, and answers unparsable bytes with UNIMPLEMENTED.
#pragma once

#include <grpcpp/impl/codegen/server_callback_handlers.h>
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
#include "server/calls/call_work.h"
#include "server/calls/gatekeeper.h"
#include "server/calls/stall_watch.h"
#include "server/calls/stream_heartbeat.h"
#include "server/calls/unread_answers.h"
#include "server/calls/wake_timer.h"
#include "server/calls/worker_pool.h"
#include "server/rpc/call_entry.h"
#include "server/rpc/request_size.h"
#include "server/rpc/service_shared.h"
#include "server/rpc/status_conversion.h"
#include "server/rpc/stream.h"
#include "server/rpc/unary_call.h"

namespace wan::server {

// The bytes of a request before parsing.
struct ArrivedRequest {
  mutable grpc::ByteBuffer bytes;  // mutable because gRPC passes requests as const
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

// A parsed request and its lease.
template <typename Request>
struct AdmittedRequest {
  Request message;
  Admission::Lease place;
  // The code that answers the call passes the answer's status to End and sends the status that End
  // returns.
  std::shared_ptr<Call> call = nullptr;
};

// The state of a stream from its start until the call is over.
struct EnteredStream {
  std::shared_ptr<Call> call;
  Admission::Lease place;
  StallWatch::Options stall;
  std::function<void()> cancel;  // cancels the call; StallWatch calls it
};

// Maximum number of bytes of a request besides its images; checked before parsing, to limit the
// memory that parsing takes; more than twice what any valid request has.
inline constexpr int64_t kMaxPlainRequestBytes = int64_t{512} << 10;

// Admits and parses a request. Errors: RESOURCE_EXHAUSTED (SERVER_BUSY); INVALID_ARGUMENT if the
// bytes are not a `Request` or are too many. Takes the bytes out of `arrived` in any case.
template <typename Request>
absl::StatusOr<AdmittedRequest<Request>> Admit(Admission& admission, const Call& call,
                                               const ArrivedRequest& arrived) {
  grpc::ByteBuffer bytes;
  bytes.Swap(&arrived.bytes);
  auto place = admission.Request(call.TakerOf(Front::kGrpc), static_cast<int64_t>(bytes.Length()),
                                 call.effect());
  if (!place.ok()) return place.status();
  if (bytes.Length() > static_cast<size_t>(kMaxPlainRequestBytes)) {
    grpc::ProtoBufferReader walked(&bytes);
    const auto field = walked.status().ok() ? FieldPastPlainBytes(*Request::descriptor(), walked,
                                                                  kMaxPlainRequestBytes)
                                            : std::nullopt;
    if (field.has_value()) {
      // Violations name the fields of a generation request without "request." in front.
      return InvalidFields(
          {{std::string(absl::StripPrefix(*field, "request.")),
            absl::StrCat("with it the request has more than ", kMaxPlainRequestBytes,
                         " bytes beside its images, the most it may")}});
    }
  }
  AdmittedRequest<Request> admitted{{}, *std::move(place)};
  grpc::ProtoBufferReader reader(&bytes);
  // Do not read an empty message: the reader would fail because there is no first block.
  const bool parsed = bytes.Length() == 0 ||
                      (reader.status().ok() && admitted.message.ParseFromZeroCopyStream(&reader));
  if (!parsed) {
    return absl::InvalidArgumentError(
        absl::StrCat("the request is not a valid ", Request::descriptor()->full_name(),
                     ": its bytes are damaged, or a text in it is not UTF-8"));
  }
  return admitted;
}

// Derived classes add their methods by name, in their constructors. CallService cancels a call if
// the caller does not read the answer.
class CallService : public grpc::Service {
 protected:
  // `name` is the service's full name.
  CallService(std::string_view name, ServiceShared shared)
      : name_(name), shared_(std::move(shared)), timer_(shared_.clock), unread_(stall()) {}

  const ServiceShared& shared() const { return shared_; }

  // Returns the settings for the heartbeats of the service's streams.
  HeartbeatOptions heartbeat() { return {shared_.clock, timer_, shared_.heartbeat_interval}; }

  // Adds a method that returns its answer to the caller directly. `work` is a function (const
  // Request&) -> absl::StatusOr<Response>, or (const Call&, const Request&) ->
  // absl::StatusOr<Response> if it must know the caller. `work` runs on the worker pool.
  template <typename Request, typename Response, typename Work>
  void AddUnary(std::string_view method, Work work) {
    AddUnaryLater<Request, Response>(
        method,
        [this, work = std::move(work)](grpc::CallbackServerContext& context,
                                       AdmittedRequest<Request> admitted, Reply<Response> reply) {
          // The request is in a shared_ptr because tasks must be copyable.
          auto held = std::make_shared<AdmittedRequest<Request>>(std::move(admitted));
          const std::shared_ptr<Call> call = held->call;
          PostWork(context, call,
                   [&work, held = std::move(held), call, reply](const absl::Status& turn) mutable {
                     absl::StatusOr<Response> result =
                         turn.ok() ? Answer<Response>(work, *call, held->message) : turn;
                     held = nullptr;
                     if (result.ok()) call->AboutMessage(*result);
                     reply(std::move(result));
                   });
        });
  }

  // The arguments of a method that answers by a callback.
  template <typename Request, typename Response>
  struct UnaryWork {
    std::shared_ptr<Call> call;
    std::shared_ptr<const Request> request;
    PostTask post;    // runs tasks of the call in the call's class of work
    PostStep decode;  // runs steps that decode images
    // Answers the call with a response or an error. Call `done` once, on any thread.
    std::function<void(absl::StatusOr<Response>)> done;
  };

  // Adds a method that answers by a callback. `work` is a function (UnaryWork<Request, Response>)
  // -> void. `work` is called on the worker pool, and must return instead of waiting for the disk.
  template <typename Request, typename Response, typename Work>
  void AddUnaryAsync(std::string_view method, Work work) {
    AddUnaryLater<Request, Response>(
        method,
        [this, work = std::move(work)](grpc::CallbackServerContext& context,
                                       AdmittedRequest<Request> admitted, Reply<Response> reply) {
          auto held = std::make_shared<AdmittedRequest<Request>>(std::move(admitted));
          const std::shared_ptr<Call> call = held->call;
          PostWork(
              context, call,
              [this, &work, held = std::move(held), call, reply](const absl::Status& turn) mutable {
                if (!turn.ok()) return reply(turn);
                const Request* const request = &held->message;
                work(UnaryWork<Request, Response>{
                    call, std::shared_ptr<const Request>(std::move(held), request),
                    PostOf(shared_.pool, call),
                    DecodingOf(shared_.pool, call,
                               [gone = reply.caller_gone()] { return gone.stop_requested(); }),
                    [this, call, reply](absl::StatusOr<Response> result) {
                      AnswerLater(call, reply, std::move(result));
                    }});
              });
        });
  }

  // Adds a method that works in steps; between two steps the pool serves other calls. `begin`
  // returns the object of type Steps. Steps::Step() -> absl::StatusOr<bool> says whether the answer
  // is complete; then Steps::Take() returns the answer.
  template <typename Request, typename Response, typename Steps>
  void AddUnaryInSteps(std::string_view method,
                       std::function<absl::StatusOr<std::unique_ptr<Steps>>(const Call& call,
                                                                            const Request& request)>
                           begin) {
    AddUnaryLater<Request, Response>(
        method,
        [this, begin = std::move(begin)](grpc::CallbackServerContext& context,
                                         AdmittedRequest<Request> admitted, Reply<Response> reply) {
          auto run = std::make_shared<StepsOfCall<Request, Response, Steps>>(
              context, std::move(admitted), reply);
          PostWork(context, run->admitted.call, [this, &begin, run](const absl::Status& turn) {
            absl::Status status = turn;
            if (status.ok()) {
              absl::StatusOr<std::unique_ptr<Steps>> begun =
                  begin(*run->admitted.call, run->admitted.message);
              status = begun.status();
              if (begun.ok()) run->steps = *std::move(begun);
            }
            Continue(run, status);
          });
        });
  }

  // Adds a method whose `begin` starts the work and makes sure that `reply` is called once. `begin`
  // runs on a thread of gRPC and must not block. `reply` holds the lease of the request.
  template <typename Request, typename Response>
  void AddUnaryLater(std::string_view method,
                     std::function<void(grpc::CallbackServerContext& context,
                                        AdmittedRequest<Request> admitted, Reply<Response> reply)>
                         begin) {
    Add(method, grpc::internal::RpcMethod::NORMAL_RPC,
        new grpc::internal::CallbackUnaryHandler<ArrivedRequest, SentAnswer>(
            [this, begin = std::move(begin), path = PathOf(method)](
                grpc::CallbackServerContext* context, const ArrivedRequest* arrived,
                SentAnswer* answer) -> grpc::ServerUnaryReactor* {
              auto admitted = Enter<Request>(*context, path, *arrived);
              if (!admitted.ok()) {
                grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
                reactor->Finish(ToGrpcStatus(admitted.status()));
                return reactor;
              }
              auto* const call =
                  new UnaryCall(*context, *answer, admitted->call, std::move(admitted->place),
                                {shared_.admission, unread_});
              begin(*context, *std::move(admitted), Reply<Response>(*call));
              return call;
            }));
  }

  // Adds a server-streaming method. `make` returns the stream object of a call.
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
              auto place = shared_.admission.Stream(call->TakerOf(Front::kGrpc));
              if (!place.ok()) return new Refused(call->End(place.status()));
              std::shared_ptr<Stream<Message>> stream = make(*context, *std::move(admitted));
              stream->Keep(*std::move(place), shared_.admission);
              stream->Answer(call);
              stream->EndIfStalled(stall(), [context] { context->TryCancel(); });
              return Stream<Message>::Begin(std::move(stream));
            }));
  }

  // Posts a task to the pool, in the class of work of a unary call that is not answered yet. The
  // task receives an error if the caller has gone, the server stops, or the caller must not see the
  // job that the call names.
  void PostWork(const grpc::CallbackServerContext& context, const std::shared_ptr<Call>& call,
                WorkerPool::Task task) {
    shared_.pool.Post(
        call->work(), call->party(), [&context] { return context.IsCancelled(); },
        [call, task = std::move(task)](const absl::Status& turn) {
          task(turn.ok() ? call->CheckResource() : turn);
        });
  }

  // Adds a bidirectional streaming method. `make` returns the gRPC reactor of a call. `make` runs
  // on a thread of gRPC and must not block.
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
              absl::StatusOr<std::shared_ptr<Call>> call =
                  EnterCall(shared_.gatekeeper, *context, path);
              if (!call.ok()) return new Refused(call.status());
              auto place = shared_.admission.Stream((*call)->TakerOf(Front::kGrpc));
              if (!place.ok()) return new Refused((*call)->End(place.status()));
              return make({*std::move(call), *std::move(place), stall(),
                           [context] { context->TryCancel(); }});
            }));
  }

 private:
  // The reactor of a stream that was refused.
  template <typename Reactor>
  class Refusal final : public Reactor {
   public:
    explicit Refusal(const absl::Status& status) { this->Finish(ToGrpcStatus(status)); }

   private:
    void OnDone() override { delete this; }
  };

  // The state of a call of a method that was added by AddUnaryInSteps.
  template <typename Request, typename Response, typename Steps>
  struct StepsOfCall {
    StepsOfCall(grpc::CallbackServerContext& context_in, AdmittedRequest<Request> admitted_in,
                Reply<Response> reply_in)
        : context(context_in), admitted(std::move(admitted_in)), reply(reply_in) {}

    grpc::CallbackServerContext& context;
    AdmittedRequest<Request> admitted;
    Reply<Response> reply;
    std::unique_ptr<Steps> steps;
  };

  // Runs one step, then posts the next one or answers the call.
  template <typename Run>
  void Continue(const std::shared_ptr<Run>& run, absl::Status status) {
    if (status.ok()) {
      const absl::StatusOr<bool> complete = run->steps->Step();
      status = complete.status();
      if (complete.ok() && !*complete) {
        const Call& call = *run->admitted.call;
        shared_.pool.PostNext(
            call.work(), call.party(), [&context = run->context] { return context.IsCancelled(); },
            [this, run](const absl::Status& turn) { Continue(run, turn); });
        return;
      }
    }
    // Release everything before the answer, because the answer may destroy the call.
    const auto steps = std::move(run->steps);
    run->admitted.message.Clear();
    if (!status.ok()) return run->reply(status);
    run->reply(steps->Take());
  }

  template <typename Response, typename Work, typename Request>
  static absl::StatusOr<Response> Answer(const Work& work, const Call& call,
                                         const Request& request) {
    if constexpr (std::is_invocable_v<const Work&, const Call&, const Request&>) {
      return work(call, request);
    } else {
      return work(request);
    }
  }

  template <typename Response>
  void AnswerLater(const std::shared_ptr<Call>& call, Reply<Response> reply,
                   absl::StatusOr<Response> result) {
    // The answer is in a shared_ptr because tasks must be copyable.
    auto answer = std::make_shared<absl::StatusOr<Response>>(std::move(result));
    PostAnswer(shared_.pool, *call, [call, reply, answer = std::move(answer)] {
      if (answer->ok()) call->AboutMessage(**answer);
      reply(std::move(*answer));
    });
  }

  // Asks the gatekeeper, then admits the request and parses it.
  template <typename Request>
  absl::StatusOr<AdmittedRequest<Request>> Enter(const grpc::CallbackServerContext& context,
                                                 const std::string& path,
                                                 const ArrivedRequest& arrived) {
    absl::StatusOr<std::shared_ptr<Call>> call = EnterCall(shared_.gatekeeper, context, path);
    if (!call.ok()) return call.status();
    auto admitted = Admit<Request>(shared_.admission, **call, arrived);
    if (!admitted.ok()) return (*call)->End(admitted.status());
    (*call)->Read(admitted->message);
    admitted->call = *std::move(call);
    return admitted;
  }

  StallWatch::Options stall() { return {shared_.clock, timer_, kLongestStall}; }

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

  // CallService cancels a call if the caller does not read a message or the answer for this long.
  static constexpr absl::Duration kLongestStall = absl::Seconds(60);

  const std::string name_;
  const ServiceShared shared_;
  WakeTimer timer_;  // wakes streams, and cancels calls whose callers do not read
  UnreadAnswers unread_;
  std::list<std::string> paths_;  // a list, because gRPC keeps pointers to the strings
};

}  // namespace wan::server
