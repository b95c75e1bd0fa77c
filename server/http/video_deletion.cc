#include "server/http/video_deletion.h"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <utility>

#include "engine/api/errors.h"
#include "server/calls/call_work.h"
#include "server/conversion/errors.h"

namespace wan::server {
namespace {

HttpAnswer Deleted(const VideoExchange& exchange) {
  return exchange.Done({{"id", exchange.id}, {"object", "video.deleted"}, {"deleted", true}});
}

// Cancels a video, and deletes the video once it has ended. The object keeps itself alive until it
// has answered.
class Deletion : public std::enable_shared_from_this<Deletion> {
 public:
  // `kept` keeps the pool alive (WorkerPool::Keep).
  Deletion(JobService& jobs, WorkerPool& pool, std::shared_ptr<const VideoExchange> exchange,
           HttpReply reply, std::shared_ptr<const void> kept)
      : jobs_(jobs),
        pool_(pool),
        kept_(std::move(kept)),
        held_(std::move(exchange)),
        exchange_(*held_),
        reply_(std::move(reply)) {}

  void Begin() {
    jobs_.Cancel(exchange_.job, "DELETE /v1/videos",
                 [self = shared_from_this()](const absl::StatusOr<wan::v1::Job>& cancelled) {
                   PostAnswer(self->pool_, *self->exchange_.call, [self, cancelled] {
                     if (!cancelled.ok()) {
                       return self->reply_(self->exchange_.Failed(cancelled.status()));
                     }
                     self->AwaitEnd(cancelled->last_sequence());
                   });
                 });
  }

 private:
  // Waits for the end of the job; runs on a worker thread.
  void AwaitEnd(int64_t after_sequence) {
    absl::StatusOr<std::unique_ptr<EventCursor>> cursor =
        jobs_.Watch(exchange_.job, after_sequence, [self = shared_from_this()] {
          const Call& call = *self->exchange_.call;
          self->pool_.Post(call.work(), call.party(), nullptr,
                           [self](const absl::Status&) { self->Follow(); });
        });
    if (!cursor.ok()) {
      reply_(exchange_.Failed(cursor.status()));
      return;
    }
    cursor_ = *std::move(cursor);
    Follow();
  }

  void Follow() {
    wan::v1::Event event;
    for (;;) {
      switch (cursor_->TryNext(&event)) {
        case EventCursor::Next::kEvent:
          continue;
        case EventCursor::Next::kPending:
          return;
        case EventCursor::Next::kEnd:
          break;
      }
      break;
    }
    const absl::Status status = cursor_->status();
    // The cursor's callback owns this object, so keep the object while the cursor is destroyed.
    const std::shared_ptr<Deletion> self = shared_from_this();
    cursor_ = nullptr;
    if (!status.ok()) return reply_(exchange_.Failed(status));
    jobs_.Delete(exchange_.job, PostOf(pool_, exchange_.call), [self](const absl::Status& deleted) {
      PostAnswer(self->pool_, *self->exchange_.call, [self, deleted] {
        self->reply_(deleted.ok() ? Deleted(self->exchange_) : self->exchange_.Failed(deleted));
      });
    });
  }

  JobService& jobs_;
  WorkerPool& pool_;
  const std::shared_ptr<const void> kept_;
  const std::shared_ptr<const VideoExchange> held_;
  const VideoExchange& exchange_;
  const HttpReply reply_;
  std::unique_ptr<EventCursor> cursor_;
};

}  // namespace

void DeleteVideo(JobService& jobs, WorkerPool& pool,
                 const std::shared_ptr<const VideoExchange>& exchange, const HttpReply& reply) {
  const auto told = [&jobs, &pool, exchange, reply,
                     kept = pool.Keep()](const absl::Status& status) {
    PostAnswer(pool, *exchange->call, [&jobs, &pool, exchange, reply, kept, status] {
      if (ReasonOf(status) == kReasonJobNotEnded) {
        return std::make_shared<Deletion>(jobs, pool, exchange, reply, kept)->Begin();
      }
      reply(status.ok() ? Deleted(*exchange) : exchange->Failed(status));
    });
  };
  jobs.Delete(exchange->job, PostOf(pool, exchange->call), told);
}

}  // namespace wan::server
