// The base class of server streams. The stream asks its subclass for messages on the worker pool,
// and has one write in flight at a time.
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

// Produce and OnAbandoned run on the pool, one at a time and never after the stream has ended, so
// subclasses need no lock for them. A caller who reads slowly delays only its own stream.
//
// Wake and the end of a write post the task Pump unless the stream is busy. Pump runs until it has
// begun a write, ended the call, or found nothing to send. So there is at most one posted Pump,
// running Pump or write in flight at a time, and only Pump calls gRPC.
template <typename Message>
class Stream : public grpc::ServerWriteReactor<Message>,
               public std::enable_shared_from_this<Stream<Message>> {
 public:
  // Begins to send messages. Return the result to gRPC; the stream keeps itself alive until the
  // call is over.
  static grpc::ServerWriteReactor<Message>* Begin(std::shared_ptr<Stream> stream) {
    Stream* const reactor = stream.get();
    reactor->self_ = std::move(stream);
    reactor->Wake();
    return reactor;
  }

  // The stream keeps the lease `place` until it is destroyed, and admits its messages while they
  // are sent. Call Keep before Begin.
  void Keep(Admission::Lease place, Admission& admission) {
    place_ = std::move(place);
    admission_ = &admission;
  }

  // Sets the call that the stream answers; before the first message the stream checks that the
  // caller may see the call's job. Call Answer before Begin.
  void Answer(std::shared_ptr<Call> call) {
    call_ = std::move(call);
    work_ = call_->work();
  }

  // Calls `cancel`, which must cancel the call, when a write takes longer than options.longest.
  // Call EndIfStalled before Begin.
  void EndIfStalled(const StallWatch::Options& options, std::function<void()> cancel) {
    stall_.emplace(options, std::move(cancel));
  }

  // Call Wake when the subclass may have something to send, on any thread at any time. Does not
  // block.
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
  // Returns the call; null if Answer was not called.
  Call* call() const { return call_.get(); }

  enum class Next {
    kMessage,  // Produce has filled the message
    kPending,  // there is nothing to send yet; the subclass will call Wake
    kEnd,      // there are no more messages; Produce has set the status
  };

  explicit Stream(WorkerPool& pool) : pool_(pool) {}

  // Sets the class of work for the next calls of Produce. Call ContinueAs only in Produce.
  void ContinueAs(WorkClass work) { work_ = work; }

  // Fills `message`, which is empty, or sets `status` (OK at first), which ends the call.
  virtual Next Produce(Message* message, absl::Status* status) = 0;

  // Called before OnOver if the caller cancelled, went away or passed its deadline.
  virtual void OnAbandoned() {}

  // Called on a thread of gRPC when the call is over; when it returns, gRPC's objects of the call
  // are destroyed.
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
    if (stall_.has_value()) stall_->Stop();  // stop the watch before the call is destroyed
    OnOver();
    const std::shared_ptr<Stream> last = std::move(self_);
  }

  void PostPump() {
    // Pass no function `gone`, so that Pump always runs: it ends the call even if the caller has
    // gone or the server stops.
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
        // Leave busy_ true, so that Pump is not posted again.
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

  // Admits the message that is about to be sent. If the message is refused, the call ends; the
  // caller can continue after the last message in a new call.
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
  bool entered_ = false;  // whether CheckResource was called; only Pump uses it
  std::shared_ptr<Stream> self_;
  Message message_;              // the message that is being written
  Admission::Lease sent_place_;  // the lease of message_
  absl::Mutex mutex_;
  bool busy_ ABSL_GUARDED_BY(mutex_) = false;
  bool woken_ ABSL_GUARDED_BY(mutex_) = false;  // whether Wake was called since Pump last checked
  bool abandoned_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace wan::server
