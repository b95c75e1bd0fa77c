#include "server/rpc/event_streams.h"

#include <chrono>
#include <utility>

#include "server/conversion/convert.h"

namespace wan::server {
namespace {

constexpr std::chrono::milliseconds kDeadlineLatency{100};

}  // namespace

absl::StatusOr<std::unique_ptr<EventCursor>> EventStream::Follow(std::string_view job,
                                                                 int64_t after_sequence) {
  // Weak, because the stream owns the cursor, which owns this function.
  return jobs_.Watch(job, after_sequence, [weak = weak_from_this()] {
    if (const auto stream = weak.lock()) stream->Wake();
  });
}

EventStream::Next EventStream::Produce(wan::v1::Event* event, absl::Status* status) {
  if (cursor_ == nullptr) {
    auto opened = Open();
    if (!opened.ok()) {
      *status = opened.status();
      return Next::kEnd;
    }
    cursor_ = *std::move(opened);
    ContinueAs(WorkClass::kQuick);
  }
  switch (cursor_->TryNext(event)) {
    case EventCursor::Next::kEvent:
      heartbeat_.MessageSent();
      return Next::kMessage;
    case EventCursor::Next::kPending:
      // Weak: the timer must not keep a stream whose call is over.
      if (!heartbeat_.Due([weak = weak_from_this()] {
            if (const auto stream = weak.lock()) stream->Wake();
          })) {
        return Next::kPending;
      }
      *event->mutable_time() = ToProto(clock_.Now());
      event->mutable_heartbeat();
      return Next::kMessage;
    case EventCursor::Next::kEnd:
      break;
  }
  *status = cursor_->status();
  return Next::kEnd;
}

absl::StatusOr<std::unique_ptr<EventCursor>> WatchJobStream::Open() {
  return Follow(request_.name(), request_.after_sequence());
}

absl::StatusOr<std::unique_ptr<EventCursor>> GenerateStream::Open() {
  absl::StatusOr<JobService::Created> created =
      jobs_.Create(admitted_->message.request(), /*tied_to_caller=*/true, call()->caller().name,
                   call()->trace());
  admitted_.reset();
  if (!created.ok()) return created.status();
  call()->About(created->job.name());
  // A job of CreateJob is not this caller's to end.
  if (created->holds) own_job_ = created->job.name();
  return Follow(created->job.name(), 0);
}

GenerateStream::~GenerateStream() {
  if (!own_job_.empty()) jobs_.CallerDone(own_job_);
}

void GenerateStream::OnAbandoned() {
  if (own_job_.empty()) return;
  jobs_.CallerWentAway(own_job_, DeadlinePassed());
  own_job_.clear();
}

bool GenerateStream::DeadlinePassed() const {
  // The caller's own deadline comes first and arrives here as a cancellation: on the way the time
  // left is rounded up by as much as a hundredth, and counted from its arrival.
  return std::chrono::steady_clock::now() - begun_ >= given_ - given_ / 100 - kDeadlineLatency;
}

}  // namespace wan::server
