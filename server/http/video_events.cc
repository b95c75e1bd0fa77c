#include "server/http/video_events.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "server/http/video_follower.h"
#include "server/http/video_object.h"
#include "server/http/video_query.h"
#include "server/store/job_store.h"

namespace wan::server {
namespace {

using nlohmann::json;

// How long a browser's EventSource waits before it connects again.
constexpr char kRetry[] = "retry: 2000\n\n";
constexpr char kHeartbeat[] = ": heartbeat\n\n";

// `id` may be empty.
std::string RecordOf(const char* event, const json& data, const std::string& id = {}) {
  return absl::StrCat(id.empty() ? "" : absl::StrCat("id: ", id, "\n"), "event: ", event,
                      "\ndata: ", data.dump(-1, ' ', false, json::error_handler_t::replace),
                      "\n\n");
}

std::string UrlOf(const std::string& jpeg) {
  return absl::StrCat("data:image/jpeg;base64,", absl::Base64Escape(jpeg));
}

// Wake and Next post the task Pump unless the feed is busy, so at most one Pump is posted or runs
// at a time; only Pump uses the members without a mutex.
class VideoFeed : public std::enable_shared_from_this<VideoFeed> {
 public:
  VideoFeed(std::shared_ptr<VideoExchange> exchange, const VideoEventParts& parts,
            const EventsQuery& query, const wan::v1::Job& job)
      : exchange_(std::move(exchange)),
        parts_(parts),
        previews_(query.previews),
        begins_now_(!query.after.has_value() && job.last_sequence() > 0),
        // If the caller has read no events yet, the first event sent shows the current state.
        after_(begins_now_ ? job.last_sequence() - 1 : query.after.value_or(0)),
        follower_(job),
        heartbeat_(parts.heartbeat) {}

  // Takes a place among the open streams, and begins to follow the job. Call Open once, before
  // Next.
  absl::Status Open() {
    absl::StatusOr<Admission::Lease> place = parts_.admission.Stream(exchange_->party());
    if (!place.ok()) return place.status();
    place_ = *std::move(place);
    // Capture a weak pointer, because the feed owns the cursor, which owns the callback.
    absl::StatusOr<std::unique_ptr<EventCursor>> cursor =
        parts_.jobs.Watch(exchange_->job, 0, WeakWake());
    if (!cursor.ok()) return cursor.status();
    cursor_ = *std::move(cursor);
    return absl::OkStatus();
  }

  // Passes the next piece to `take` when there is one. Call Next again only after `take` was
  // called.
  void Next(HttpAnswer::TakePiece take) {
    {
      absl::MutexLock lock(&mutex_);
      take_ = std::move(take);
    }
    Wake();
  }

 private:
  std::function<void()> WeakWake() {
    return [weak = weak_from_this()] {
      if (const auto feed = weak.lock()) feed->Wake();
    };
  }

  void Wake() {
    {
      absl::MutexLock lock(&mutex_);
      woken_ = true;
      if (busy_) return;
      busy_ = true;
    }
    // Pass no function `gone`, so that Pump also runs when the server stops, and ends the stream.
    const Call& call = *exchange_->call;
    parts_.pool.Post(WorkClass::kQuick, call.party(), /*gone=*/nullptr,
                     [feed = shared_from_this()](const absl::Status& /*turn*/) { feed->Pump(); });
  }

  void Pump() {
    for (;;) {
      {
        absl::MutexLock lock(&mutex_);
        woken_ = false;
        if (take_ == nullptr) {
          busy_ = false;
          return;
        }
      }
      std::optional<absl::StatusOr<std::string>> piece = Produce();
      HttpAnswer::TakePiece take;
      {
        absl::MutexLock lock(&mutex_);
        if (!piece.has_value() && woken_) continue;
        busy_ = false;
        if (!piece.has_value()) return;
        take = std::exchange(take_, nullptr);
      }
      return take(*std::move(piece));
    }
  }

  // Returns the next piece, or an empty piece after the end; nullopt if no piece is ready yet.
  std::optional<absl::StatusOr<std::string>> Produce() {
    sent_place_ = Admission::Lease();
    if (!std::exchange(begun_, true)) return kRetry;
    wan::v1::Event event;
    for (;;) {
      event.Clear();
      switch (cursor_->TryNext(&event)) {
        case EventCursor::Next::kEvent: {
          std::string text = TextOf(event);
          if (!text.empty()) return Admitted(std::move(text));
          continue;
        }
        case EventCursor::Next::kPending:
          if (heartbeat_.Due(WeakWake())) return kHeartbeat;
          return std::nullopt;
        case EventCursor::Next::kEnd:
          return End(cursor_->status());
      }
    }
  }

  // Returns the text that the stream has for an event; empty if watchers do not get the event.
  std::string TextOf(const wan::v1::Event& event) {
    if (event.has_preview()) {
      if (!previews_) return {};
      json frames = json::array({UrlOf(event.preview().jpeg())});
      for (const std::string& jpeg : event.preview().later_jpegs()) frames.push_back(UrlOf(jpeg));
      return RecordOf("preview", {{"step", event.preview().step()}, {"frames", std::move(frames)}});
    }
    VideoFollower::Change change = follower_.Apply(event);
    if (event.sequence() <= after_) return {};
    const bool ended = IsFinal(follower_.job().state());
    if (begins_now_ && event.sequence() == after_ + 1) change = {true, !ended};
    const std::string id = absl::StrCat(event.sequence());
    // Only the last record of an event has the ID, so that a caller whose connection breaks between
    // the two records gets both again.
    std::string text;
    if (change.status) {
      text = RecordOf("status", VideoOf(ended ? Ended() : follower_.job()),
                      change.progress ? std::string() : id);
    }
    if (change.progress) absl::StrAppend(&text, RecordOf("progress", follower_.Progress(), id));
    return text;
  }

  // Returns the job after its end.
  wan::v1::Job Ended() const {
    absl::StatusOr<wan::v1::Job> job = parts_.jobs.Get(exchange_->job);
    return job.ok() ? *std::move(job) : follower_.job();  // use the last known state, because the
                                                          // job was deleted
  }

  // Admits a piece that is about to be sent. If the piece is refused, the stream ends; the caller
  // can reconnect and continue after the last event.
  absl::StatusOr<std::string> Admitted(std::string text) {
    absl::StatusOr<Admission::Lease> place = parts_.admission.Message(
        exchange_->party(), static_cast<int64_t>(text.size()), exchange_->call->effect());
    if (!place.ok()) return exchange_->call->End(place.status());
    sent_place_ = *std::move(place);
    heartbeat_.MessageSent();
    return text;
  }

  absl::StatusOr<std::string> End(const absl::Status& status) {
    const absl::Status shown = exchange_->call->End(status);
    place_ = Admission::Lease();
    // A server that stops ends the stream as if it were complete, so that the caller connects
    // again.
    if (shown.ok() || absl::IsUnavailable(shown)) return std::string();
    return shown;
  }

  const std::shared_ptr<VideoExchange> exchange_;
  const VideoEventParts parts_;
  const bool previews_;
  const bool begins_now_;
  const int64_t after_;  // events up to this sequence are not sent
  VideoFollower follower_;
  StreamHeartbeat heartbeat_;
  std::unique_ptr<EventCursor> cursor_;
  bool begun_ = false;
  Admission::Lease place_;
  Admission::Lease sent_place_;  // the lease of the piece that is being sent
  absl::Mutex mutex_;
  HttpAnswer::TakePiece take_ ABSL_GUARDED_BY(mutex_);  // null: no piece is asked for
  bool busy_ ABSL_GUARDED_BY(mutex_) = false;
  bool woken_ ABSL_GUARDED_BY(mutex_) = false;  // whether Wake was called since Pump last checked
};

}  // namespace

HttpAnswer VideoEvents(const std::shared_ptr<VideoExchange>& exchange,
                       const VideoEventParts& parts) {
  const absl::StatusOr<EventsQuery> query = ParseEventsQuery(exchange->head);
  if (!query.ok()) return exchange->Failed(query.status());
  const absl::StatusOr<wan::v1::Job> job = parts.jobs.Get(exchange->job);
  if (!job.ok()) return exchange->Failed(job.status());
  HttpAnswer answer;
  if (query->after.has_value() && IsFinal(job->state()) && *query->after >= job->last_sequence()) {
    // An EventSource that has read the end connects once more; after this answer it stops.
    answer.status = 204;
    exchange->call->End(absl::OkStatus()).IgnoreError();
    return answer;
  }
  answer.fields = {{"Content-Type", "text/event-stream"},
                   {"Cache-Control", "no-store"},
                   {"X-Accel-Buffering", "no"}};
  answer.unsized = true;
  if (exchange->head.method == "HEAD") {
    exchange->call->End(absl::OkStatus()).IgnoreError();
    return answer;
  }
  const auto feed = std::make_shared<VideoFeed>(exchange, parts, *query, *job);
  if (absl::Status opened = feed->Open(); !opened.ok()) return exchange->Failed(opened);
  answer.next_piece = [feed](HttpAnswer::TakePiece take) { feed->Next(std::move(take)); };
  return answer;
}

}  // namespace wan::server
