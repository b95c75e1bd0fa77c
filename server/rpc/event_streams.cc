#include "server/rpc/event_streams.h"

#include "server/calls/call_work.h"
#include "server/conversion/convert.h"

namespace wan::server {
namespace {

constexpr std::chrono::milliseconds kDeadlineLatency{100};

}  // namespace

absl::StatusOr<std::unique_ptr<EventCursor>> EventStream::Follow(std::string_view job,
                                                                 int64_t after_sequence) {
  // Capture a weak pointer, because the stream owns the cursor, which owns the callback.
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
    if (*opened == nullptr) return Next::kPending;
    cursor_ = *std::move(opened);
    ContinueAs(WorkClass::kQuick);
  }
  switch (cursor_->TryNext(event)) {
    case EventCursor::Next::kEvent:
      heartbeat_.MessageSent();
      return Next::kMessage;
    case EventCursor::Next::kPending:
      // Capture a weak pointer, so that the timer does not keep the stream alive after its call.
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
  if (admitted_.has_value()) {
    auto held = std::make_shared<AdmittedRequest<wan::v1::GenerateRequest>>(*std::move(admitted_));
    admitted_.reset();
    const std::shared_ptr<Call> call = held->call;
    const wan::v1::GenerationRequest* const asked = &held->message.request();
    const auto self = std::static_pointer_cast<GenerateStream>(shared_from_this());
    jobs_.Create(
        {std::move(held), asked},
        {/*tied=*/true, call->caller().name, call->trace(),
         DecodingOf(workers_, call, [self] { return self->IsAbandoned(); }), call->ReadsAll()},
        PostOf(workers_, call),
        [self, kept = workers_.Keep()](absl::StatusOr<JobService::Created> created) {
          self->OnMade(std::move(created));
        });
    return nullptr;
  }
  std::optional<absl::StatusOr<JobService::Created>> created;
  {
    absl::MutexLock lock(&making_.mutex);
    created.swap(making_.made);
  }
  if (!created.has_value()) return nullptr;
  if (!created->ok()) return created->status();
  const std::string& job = (*created)->job.name();
  call()->About(job);
  // If CreateJob made the job, the end of this call must not end the job.
  if ((*created)->holds) own_job_ = job;
  return Follow(job, 0);
}

bool GenerateStream::IsAbandoned() {
  absl::MutexLock lock(&making_.mutex);
  return making_.abandoned;
}

void GenerateStream::OnMade(absl::StatusOr<JobService::Created> created) {
  const std::string held = created.ok() && created->holds ? created->job.name() : std::string();
  bool abandoned = false;
  bool deadline_passed = false;
  {
    absl::MutexLock lock(&making_.mutex);
    abandoned = making_.abandoned;
    deadline_passed = making_.deadline_passed;
    if (!abandoned) making_.made = std::move(created);
  }
  if (!abandoned) {
    Wake();
  } else if (!held.empty()) {
    jobs_.CallerWentAway(held, deadline_passed);
  }
}

GenerateStream::~GenerateStream() {
  if (!own_job_.empty()) jobs_.CallerDone(own_job_);
}

void GenerateStream::OnAbandoned() {
  {
    absl::MutexLock lock(&making_.mutex);
    making_.abandoned = true;
    making_.deadline_passed = DeadlinePassed();
    if (making_.made.has_value() && making_.made->ok() && (*making_.made)->holds) {
      own_job_ = (*making_.made)->job.name();
    }
  }
  if (own_job_.empty()) return;
  jobs_.CallerWentAway(own_job_, DeadlinePassed());
  own_job_.clear();
}

bool GenerateStream::DeadlinePassed() const {
  // Compare the time with the caller's deadline, because the client enforces its deadline itself,
  // and the server sees only a cancellation. The deadline that gRPC tells the server is later: gRPC
  // rounds the time up by up to 1 % and counts it from the request's arrival.
  return std::chrono::steady_clock::now() - begun_ >= given_ - given_ / 100 - kDeadlineLatency;
}

}  // namespace wan::server
