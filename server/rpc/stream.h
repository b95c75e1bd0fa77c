// Base class of server streams: it pulls messages from a source on the worker pool and has one
// write in flight at a time.
#pragma once

#include <grpcpp/support/server_callback.h>

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "server/calls/admission.h"
#include "server/calls/gatekeeper.h"
#include "server/calls/stall_watch.h"
#include "server/calls/worker_pool.h"
#include "server/rpc/status_conversion.h"

namespace wan::server {

// A subclass says where messages come from. Its hooks run on the pool, one at a time, and never
// after the stream has ended, so they need no lock of their own. A reader that is slow holds back
// nothing but its own stream.
//
// Wake and the end of a write make the stream busy and post Pump. Pump runs until it has begun a
// write, ended the call, or found nothing to do. So at any time at most one of a posted Pump, a
// running Pump and a write in flight exists, and Pump alone calls gRPC.
template <typename Message>
class Stream : public grpc::ServerWriteReactor<Message>,
               public std::enable_shared_from_this<Stream<Message>> {
 public:
  // Begins the stream. Return the result to gRPC; the stream keeps itself alive until the call is
  // over.
  static grpc::ServerWriteReactor<Message>* Begin(std::shared_ptr<Stream> stream) {
    Stream* const reactor = stream.get();
    reactor->self_ = std::move(stream);
    reactor->Wake();
    return reactor;
  }

  // Holds the stream's place among all streams until its destruction, and counts its messages while
  // they are sent. Call it before Begin.
  void Keep(Admission::Lease place, Admission& admission) {
    place_ = std::move(place);
    admission_ = &admission;
  }

  // The call that the stream answers; its resource is checked before the first message. Before
  // Begin.
  void Answer(std::shared_ptr<Call> call) {
    call_ = std::move(call);
    work_ = call_->work();
  }

  // Calls `cancel`, which ends the call, when the reader has not taken a message for this time.
  // Call it before Begin.
  void EndIfStalled(const StallWatch::Options& options, std::function<void()> cancel) {
    stall_.emplace(options, std::move(cancel));
  }

  // There may be something to send. Any thread, at any time; does not block.
  void Wake() {
    {
      absl::MutexLock lock(&mutex_);
      woken_ = true;
      if (busy_) return;
      busy_ = true;
    }
    PostPump();
  }

 protected:
  // Null in a stream that answers no call.
  Call* call() const { return call_.get(); }

  enum class Next {
    kMessage,  // the message was filled
    kPending,  // nothing yet; the source will call Wake
    kEnd,      // no more; the status was set
  };

  explicit Stream(WorkerPool& pool) : pool_(pool) {}

  // From now on Produce is work of another class than the call's method has. Called by Produce.
  void ContinueAs(WorkClass work) { work_ = work; }

  // Fills the message, which is empty, or sets the status (OK at first) that ends the call.
  virtual Next Produce(Message* message, absl::Status* status) = 0;

  // The caller cancelled, went away or passed its deadline. The call ends after this.
  virtual void OnAbandoned() {}

  // The call is over, and what gRPC owns of it goes when this returns. On a thread of gRPC.
  virtual void OnOver() {}

 private:
  void OnWriteDone(bool ok) final {
    if (stall_.has_value()) stall_->End();
    sent_place_ = Admission::Lease();
    {
      absl::MutexLock lock(&mutex_);
      if (!ok) abandoned_ = true;
    }
    PostPump();
  }

  void OnCancel() final {
    {
      absl::MutexLock lock(&mutex_);
      abandoned_ = true;
    }
    Wake();
  }

  void OnDone() final {
    if (stall_.has_value()) stall_->Stop();  // the call is gone when this returns
    OnOver();
    const std::shared_ptr<Stream> last = std::move(self_);
  }

  void PostPump() {
    // It always runs: a pump ends the call of a caller who is gone, and of a server that stops.
    pool_.Post(work_, call_ == nullptr ? std::string() : call_->party(), nullptr,
               [stream = this->shared_from_this()](const absl::Status&) { stream->Pump(); });
  }

  void Pump() {
    for (;;) {
      bool abandoned = false;
      {
        absl::MutexLock lock(&mutex_);
        woken_ = false;
        abandoned = abandoned_;
      }
      if (abandoned) {
        OnAbandoned();
        // A call that ends stays busy, so that nothing pumps again.
        End(absl::CancelledError("the caller is gone"));
        return;
      }
      if (!std::exchange(entered_, true) && call_ != nullptr) {
        if (absl::Status allowed = call_->CheckResource(); !allowed.ok()) {
          End(allowed);
          return;
        }
      }
      message_.Clear();
      absl::Status status;
      switch (Produce(&message_, &status)) {
        case Next::kMessage: {
          {
            absl::MutexLock lock(&mutex_);
            if (abandoned_) break;
          }
          if (absl::Status room = TakeRoom(); !room.ok()) {
            End(room);
            return;
          }
          if (stall_.has_value()) stall_->Begin();
          this->StartWrite(&message_);
          return;
        }
        case Next::kEnd:
          End(status);
          return;
        case Next::kPending: {
          absl::MutexLock lock(&mutex_);
          if (woken_) break;
          busy_ = false;
          return;
        }
      }
    }
  }

  // Counts the message that is about to be sent. Without room the call ends, and its caller can
  // continue after the last message.
  absl::Status TakeRoom() {
    if (admission_ == nullptr || call_ == nullptr) return absl::OkStatus();
    absl::StatusOr<Admission::Lease> place =
        admission_->Message(call_->TakerOf(Front::kGrpc),
                            static_cast<int64_t>(message_.ByteSizeLong()), call_->effect());
    if (!place.ok()) return place.status();
    sent_place_ = *std::move(place);
    return absl::OkStatus();
  }

  void End(const absl::Status& status) {
    this->Finish(ToGrpcStatus(call_ == nullptr ? status : call_->End(status)));
  }

  WorkerPool& pool_;
  std::optional<StallWatch> stall_;
  Admission::Lease place_;
  Admission* admission_ = nullptr;
  std::shared_ptr<Call> call_;
  std::atomic<WorkClass> work_ = WorkClass::kQuick;
  bool entered_ = false;  // whether the call's resource was checked; Pump's only
  std::shared_ptr<Stream> self_;
  Message message_;              // being written
  Admission::Lease sent_place_;  // of that message
  absl::Mutex mutex_;
  bool busy_ ABSL_GUARDED_BY(mutex_) = false;
  bool woken_ ABSL_GUARDED_BY(mutex_) = false;  // since Pump last looked
  bool abandoned_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace wan::server
