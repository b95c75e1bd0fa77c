#include "server/rpc/event_streams.h"

#include <chrono>
#include <utility>

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
  }
  switch (cursor_->TryNext(event)) {
    case EventCursor::Next::kEvent:
      return Next::kMessage;
    case EventCursor::Next::kPending:
      return Next::kPending;
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
      jobs_.Create(admitted_->message.request(), /*tied_to_caller=*/true);
  admitted_.reset();
  if (!created.ok()) return created.status();
  // A job that another call made is not this caller's to end.
  if (created->created) own_job_ = created->job.name();
  return Follow(created->job.name(), 0);
}

void GenerateStream::OnAbandoned() {
  if (own_job_.empty()) return;
  // There is no caller any more to tell a failure to.
  jobs_.Cancel(own_job_, DeadlinePassed() ? "deadline exceeded" : "caller went away")
      .status()
      .IgnoreError();
}

bool GenerateStream::DeadlinePassed() const {
  // The caller's own deadline comes first and arrives here as a cancellation: on the way the time
  // left is rounded up by as much as a hundredth, and counted from its arrival.
  const std::chrono::system_clock::time_point deadline = context_.deadline();
  const auto rounding = (deadline - begun_) / 100;
  return std::chrono::system_clock::now() >= deadline - rounding - kDeadlineLatency;
}

}  // namespace wan::server
