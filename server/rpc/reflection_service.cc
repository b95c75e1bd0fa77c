#include "server/rpc/reflection_service.h"

#include <google/protobuf/descriptor.h>
#include <grpcpp/support/server_callback.h>

#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "grpc/health/v1/health.pb.h"
#include "grpc/reflection/v1/reflection.grpc.pb.h"
#include "grpc/reflection/v1alpha/reflection.grpc.pb.h"
#include "server/calls/admission.h"
#include "server/calls/gatekeeper.h"
#include "server/calls/stall_watch.h"
#include "server/calls/worker_pool.h"
#include "server/conversion/errors.h"
#include "server/rpc/call_service.h"
#include "server/rpc/reflection_answers.h"
#include "server/rpc/status_conversion.h"
#include "wan/v1/administration.pb.h"
#include "wan/v1/model_management.pb.h"
#include "wan/v1/telemetry.pb.h"
#include "wan/v1/video_generation.pb.h"

namespace wan::server {
namespace {

using google::protobuf::FileDescriptor;
// The versions v1 and v1alpha are equal on the wire, so the types of v1 serve both.
using Question = grpc::reflection::v1::ServerReflectionRequest;
using Response = grpc::reflection::v1::ServerReflectionResponse;

// Maximum number of bytes of a request, which the answer repeats; enough for the name of a host and
// one other name.
constexpr size_t kMostQuestionBytes = 4096;

// Answers the requests of a stream one by one. At most one operation is pending at a time: a read,
// a posted Reply or a write.
class Conversation final : public grpc::ServerBidiReactor<ArrivedRequest, Response> {
 public:
  // Both arguments must outlive the conversation.
  Conversation(const ServiceShared& shared, const std::vector<std::string>& services,
               EnteredStream entered)
      : shared_(shared),
        services_(services),
        entered_(std::move(entered)),
        stall_(entered_.stall, entered_.cancel),
        on_stop_(shared.stopping, Stop{*this}) {
    Read();
  }

 private:
  struct Stop {
    Conversation& conversation;
    void operator()() const { conversation.OnStop(); }
  };

  void Read() {
    {
      absl::MutexLock lock(&mutex_);
      if (!stopped_) {
        reading_ = true;
        // Read under the lock, so that a stop cannot end the call between the check and the read.
        StartRead(&arrived_);
        return;
      }
    }
    End(ServerStoppingError());
  }

  void OnStop() {
    {
      absl::MutexLock lock(&mutex_);
      stopped_ = true;
      // Nothing to do: the pending operation calls Read.
      if (!std::exchange(reading_, false)) return;
    }
    End(ServerStoppingError());
  }

  void OnReadDone(bool ok) override {
    {
      absl::MutexLock lock(&mutex_);
      if (!std::exchange(reading_, false)) return;  // nothing to do: OnStop has ended the call
    }
    if (const size_t bytes = ok ? arrived_.bytes.Length() : 0; bytes > kMostQuestionBytes) {
      arrived_.bytes.Clear();
      End(absl::InvalidArgumentError(
          absl::StrCat("the request has ", bytes, " bytes; must be at most ", kMostQuestionBytes)));
    } else if (ok) {
      shared_.pool.Post(
          entered_.call->work(), entered_.call->party(), [this] { return Gone(); },
          [this](const absl::Status& turn) { Reply(turn); });
    } else {
      End(Gone() ? absl::CancelledError("the caller is gone") : absl::OkStatus());
    }
  }

  // Answers the request that has arrived; runs on the pool.
  void Reply(const absl::Status& turn) {
    if (!turn.ok()) return End(turn);
    auto question = Admit<Question>(shared_.admission, *entered_.call, arrived_);
    if (!question.ok()) return End(question.status());
    response_ = AnswerReflection(services_, question->message);
    // Exchange the lease: the answer is larger than the request, and may wait until the caller
    // reads it.
    auto place = shared_.admission.Answer(std::move(question->place),
                                          static_cast<int64_t>(response_.ByteSizeLong()));
    if (!place.ok()) return End(place.status());
    answer_place_ = *std::move(place);
    stall_.Begin();
    StartWrite(&response_);
  }

  void OnWriteDone(bool ok) override {
    stall_.End();
    answer_place_ = Admission::Lease();
    response_.Clear();
    if (ok) {
      Read();
    } else {
      End(absl::CancelledError("the caller is gone"));
    }
  }

  void OnCancel() override {
    absl::MutexLock lock(&mutex_);
    gone_ = true;
  }

  bool Gone() {
    absl::MutexLock lock(&mutex_);
    return gone_;
  }

  void End(const absl::Status& status) { Finish(ToGrpcStatus(entered_.call->End(status))); }

  void OnDone() override {
    stall_.Stop();  // stop the watch before the call is destroyed
    delete this;
  }

  const ServiceShared& shared_;
  const std::vector<std::string>& services_;
  const EnteredStream entered_;
  ArrivedRequest arrived_;         // the request that is being read or answered
  Response response_;              // the response that is being written
  Admission::Lease answer_place_;  // the lease of `response_`
  absl::Mutex mutex_;
  bool reading_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  bool gone_ ABSL_GUARDED_BY(mutex_) = false;
  StallWatch stall_;
  std::stop_callback<Stop> on_stop_;  // declared last: its callback may run at once
};

class ReflectionService final : public CallService {
 public:
  ReflectionService(const ServiceShared& shared, std::string_view name,
                    std::vector<std::string> services)
      : CallService(name, shared), services_(std::move(services)) {
    AddConversation<Response>("ServerReflectionInfo", [this](EnteredStream entered) {
      return new Conversation(this->shared(), services_, std::move(entered));
    });
  }

 private:
  const std::vector<std::string> services_;
};

}  // namespace

std::vector<std::unique_ptr<grpc::Service>> MakeReflectionServices(const ServiceShared& shared) {
  namespace v1 = grpc::reflection::v1;
  namespace v1alpha = grpc::reflection::v1alpha;
  // Use one message of each file, so that the linker keeps the descriptors of every listed file.
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
  for (const char* const name : {v1::ServerReflection::service_full_name(),
                                 v1alpha::ServerReflection::service_full_name()}) {
    made.push_back(std::make_unique<ReflectionService>(shared, name, services));
  }
  return made;
}

}  // namespace wan::server
