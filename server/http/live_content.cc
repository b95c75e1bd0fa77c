#include "server/http/live_content.h"

#include <cstddef>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace wan::server {
namespace {

// Other downloads have the same piece size.
constexpr size_t kPieceBytes = size_t{256} << 10;
// How often a request that waits for its job looks whether its caller is still there.
constexpr absl::Duration kLookAgain = absl::Seconds(10);

// Sends a stream that has begun, at the pace at which the caller reads it. At most one call of Next
// is unanswered at a time, so the object needs no lock.
class LiveDownload : public std::enable_shared_from_this<LiveDownload> {
 public:
  LiveDownload(WorkerPool& pool, std::shared_ptr<Call> call,
               std::unique_ptr<LiveVideoReader> reader, Admission::Lease place)
      : pool_(pool), call_(std::move(call)), place_(std::move(place)), reader_(std::move(reader)) {}

  void Next(HttpAnswer::TakePiece take) {
    pool_.Post(call_->work(), call_->party(), nullptr,
               [self = shared_from_this(), take = std::move(take)](const absl::Status&) {
                 self->Send(take);
               });
  }

 private:
  void Send(const HttpAnswer::TakePiece& take) {
    // Capture a weak pointer, because this object owns the reader, which owns the callback.
    if (!reader_->Ready([weak = weak_from_this(), take] {
          if (const auto self = weak.lock()) self->Next(take);
        })) {
      return;
    }
    absl::StatusOr<std::string> piece = reader_->Read(kPieceBytes);
    if (!piece.ok() || piece->empty()) call_->End(piece.status()).IgnoreError();
    take(std::move(piece));
  }

  WorkerPool& pool_;
  const std::shared_ptr<Call> call_;
  const Admission::Lease place_;
  const std::unique_ptr<LiveVideoReader> reader_;
};

// A request that waits until its job decodes. The reader and the timer wake it.
class Waiter : public std::enable_shared_from_this<Waiter> {
 public:
  Waiter(const LiveContentParts& parts, std::shared_ptr<const VideoExchange> exchange,
         HttpReply reply, std::function<void()> kept)
      : parts_(parts),
        keep_pool_(parts.pool.Keep()),
        exchange_(std::move(exchange)),
        reply_(std::move(reply)),
        kept_(std::move(kept)) {}

  ~Waiter() {
    if (!timer_key_.empty()) parts_.timer.Remove(timer_key_);
  }

  void Begin() {
    absl::StatusOr<Admission::Lease> place = parts_.admission.Stream(exchange_->party());
    if (!place.ok()) return reply_(exchange_->Failed(place.status()));
    absl::StatusOr<std::unique_ptr<LiveVideoReader>> reader =
        parts_.jobs.WatchVideo(exchange_->job);
    if (!reader.ok()) return reply_(exchange_->Failed(reader.status()));
    {
      absl::MutexLock lock(&mutex_);
      place_ = *std::move(place);
      reader_ = *std::move(reader);
      timer_key_ = parts_.timer.Add([weak = weak_from_this()] {
        if (const auto self = weak.lock()) self->Wake();
      });
    }
    Look(absl::OkStatus());
  }

 private:
  void Wake() {
    const Call& call = *exchange_->call;
    parts_.pool.Post(call.work(), call.party(), exchange_->gone,
                     [self = shared_from_this()](const absl::Status& turn) { self->Look(turn); });
  }

  // Answers if the stream has begun, the job has ended, or `turn` is an error. Reader and timer may
  // wake two threads at a time.
  void Look(const absl::Status& turn) {
    std::unique_ptr<LiveVideoReader> reader;
    Admission::Lease place;
    {
      absl::MutexLock lock(&mutex_);
      if (reader_ == nullptr) return;  // the other thread has answered
      // While the request waits, only this callback, which the reader owns, keeps the object alive.
      if (turn.ok() && !reader_->Ready([self = shared_from_this()] { self->Wake(); })) {
        parts_.timer.WakeAt(timer_key_, parts_.clock.Steady().Now() + kLookAgain);
        return;
      }
      reader = std::move(reader_);
      place = std::move(place_);
    }
    turn.ok() ? Answer(std::move(reader)) : reply_(exchange_->Failed(turn));
  }

  void Answer(std::unique_ptr<LiveVideoReader> reader) const {
    const absl::StatusOr<bool> begun = reader->Begun();
    if (!begun.ok()) return reply_(exchange_->Failed(begun.status()));
    if (!*begun) return kept_();
    absl::StatusOr<Admission::Lease> place =
        parts_.admission.Download(exchange_->party(), exchange_->head.peer);
    if (!place.ok()) return reply_(exchange_->Failed(place.status()));
    HttpAnswer answer;
    answer.fields = {{"Content-Type", reader->content_type()}, {"Cache-Control", "no-store"}};
    answer.unsized = true;
    if (exchange_->head.method == "HEAD") {
      exchange_->call->End(absl::OkStatus()).IgnoreError();
      return reply_(std::move(answer));
    }
    const auto download = std::make_shared<LiveDownload>(parts_.pool, exchange_->call,
                                                         std::move(reader), *std::move(place));
    answer.next_piece = [download](HttpAnswer::TakePiece take) { download->Next(std::move(take)); };
    reply_(std::move(answer));
  }

  const LiveContentParts parts_;
  const std::shared_ptr<const void> keep_pool_;
  const std::shared_ptr<const VideoExchange> exchange_;
  const HttpReply reply_;
  const std::function<void()> kept_;
  absl::Mutex mutex_;
  Admission::Lease place_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<LiveVideoReader> reader_ ABSL_GUARDED_BY(mutex_);  // null after the request was
                                                                     // answered
  std::string timer_key_;  // set before the timer knows the object
};

}  // namespace

void AnswerLiveContent(const LiveContentParts& parts, std::shared_ptr<const VideoExchange> exchange,
                       const HttpReply& reply, std::function<void()> kept) {
  std::make_shared<Waiter>(parts, std::move(exchange), reply, std::move(kept))->Begin();
}

}  // namespace wan::server
