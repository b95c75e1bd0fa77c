#include "server/watch/event_log.h"

#include <algorithm>
#include <limits>

#include "server/conversion/convert.h"
#include "server/conversion/errors.h"

namespace wan::server {
namespace internal {

// The log's state for one cursor. The mutex of the stream guards all members except `notify`.
struct CursorState {
  std::function<void()> notify;
  bool armed = false;  // true: the log must call `notify` for the next event
  bool gone = false;
  bool running = false;  // whether `runner` is the thread that is calling `notify` now
  std::thread::id runner;
  std::shared_ptr<const wan::v1::Event> preview;  // a preview that the reader has not fetched yet
};

// The events of one job that this process has seen.
struct EventStream {
  absl::Mutex mutex;
  // The sequence of events[0]; older events are only in the store.
  int64_t first ABSL_GUARDED_BY(mutex) = 1;
  std::vector<std::shared_ptr<const wan::v1::Event>> events ABSL_GUARDED_BY(mutex);
  bool ended ABSL_GUARDED_BY(mutex) = false;   // whether `events` has the job's last event
  bool closed ABSL_GUARDED_BY(mutex) = false;  // whether the server is stopping
  std::vector<std::shared_ptr<CursorState>> cursors ABSL_GUARDED_BY(mutex);
};

}  // namespace internal

namespace {

using internal::CursorState;
using internal::EventStream;

constexpr absl::Duration kRewriteDelay = absl::Seconds(1);
constexpr int kPageEvents = 256;

// Limits of the size of a transaction, because other changes wait meanwhile.
constexpr size_t kTransactionChanges = 64;
constexpr size_t kTransactionBytes = size_t{1} << 20;

size_t BytesOf(const JobChange& change) {
  size_t bytes = 0;
  if (change.row.has_value()) bytes += change.row->ByteSizeLong();
  if (change.report.has_value()) bytes += change.report->ByteSizeLong();
  for (const wan::v1::Event& event : change.events) bytes += event.ByteSizeLong();
  return bytes;
}

// Returns the changes for the next transaction, at least one.
std::span<const JobChange> NextTransaction(std::span<const JobChange> changes) {
  size_t count = 0;
  for (size_t bytes = 0; count < std::min(changes.size(), kTransactionChanges); ++count) {
    bytes += BytesOf(changes[count]);
    if (count > 0 && bytes > kTransactionBytes) break;
  }
  return changes.first(count);
}
// The value of EventStream::first for a stream without events in memory.
constexpr int64_t kAllStored = std::numeric_limits<int64_t>::max();

// Changes a stream under its lock, and then, with no lock held, notifies the cursors that wait.
template <typename Change>
void ChangeAndNotify(EventStream& stream, const Change& change) {
  std::vector<std::shared_ptr<CursorState>> waiting;
  {
    absl::MutexLock lock(&stream.mutex);
    change(stream);
    for (const auto& cursor : stream.cursors) {
      if (std::exchange(cursor->armed, false)) waiting.push_back(cursor);
    }
  }
  for (const auto& cursor : waiting) {
    {
      absl::MutexLock lock(&stream.mutex);
      if (cursor->gone) continue;
      cursor->running = true;
      cursor->runner = std::this_thread::get_id();
    }
    cursor->notify();
    absl::MutexLock lock(&stream.mutex);
    cursor->running = false;
  }
}

}  // namespace

EventCursor::EventCursor(JobStore& store, std::string job, std::shared_ptr<EventStream> stream,
                         int64_t after_sequence, std::function<void()> notify,
                         std::atomic<int>& watchers)
    : store_(store),
      watchers_(watchers),
      job_(std::move(job)),
      stream_(std::move(stream)),
      state_(std::make_shared<CursorState>()),
      next_(after_sequence + 1) {
  state_->notify = std::move(notify);
  ++watchers_;
  absl::MutexLock lock(&stream_->mutex);
  stream_->cursors.push_back(state_);
}

EventCursor::~EventCursor() {
  --watchers_;
  absl::MutexLock lock(&stream_->mutex);
  state_->gone = true;
  std::erase(stream_->cursors, state_);
  if (state_->runner == std::this_thread::get_id()) return;
  const auto idle = [this] { return !state_->running; };
  stream_->mutex.Await(absl::Condition(&idle));
}

EventCursor::Next EventCursor::TryNext(wan::v1::Event* event) {
  for (;;) {
    if (page_position_ < page_.size()) {
      *event = std::move(page_[page_position_++]);
      next_ = event->sequence() + 1;
      return Next::kEvent;
    }
    int64_t first = 0;
    {
      absl::MutexLock lock(&stream_->mutex);
      first = stream_->first;
      if (next_ >= first) {
        const auto index = static_cast<size_t>(next_ - first);
        if (index < stream_->events.size()) {
          *event = *stream_->events[index];
          ++next_;
          return Next::kEvent;
        }
        if (stream_->ended) return Next::kEnd;
        if (state_->preview != nullptr) {
          *event = *std::exchange(state_->preview, nullptr);
          return Next::kEvent;
        }
        if (stream_->closed) {
          status_ = ServerStoppingError();
          return Next::kEnd;
        }
        state_->armed = true;
        return Next::kPending;
      }
    }
    status_ = ReadPage(first);
    if (!status_.ok()) return Next::kEnd;
  }
}

absl::Status EventCursor::ReadPage(int64_t stream_first) {
  absl::StatusOr<std::vector<wan::v1::Event>> page = store_.Events(job_, next_ - 1, kPageEvents);
  if (!page.ok()) return page.status();
  page_ = *std::move(page);
  page_position_ = 0;
  // Drop the events that the stream also has, which were stored after the cursor was made.
  while (!page_.empty() && page_.back().sequence() >= stream_first) page_.pop_back();
  if (page_.empty()) next_ = stream_first;
  return absl::OkStatus();
}

EventLog::EventLog(JobStore& store, Clock& clock,
                   std::function<void(const absl::Status&)> on_problem)
    : store_(store),
      clock_(clock),
      on_problem_(std::move(on_problem)),
      writer_([this] { WriterLoop(); }) {}

EventLog::~EventLog() {
  {
    absl::MutexLock lock(&mutex_);
    stop_ = true;
  }
  writer_.join();
}

void EventLog::Open(const std::string& job, int64_t last_sequence) {
  OpenLog log;
  log.stream = std::make_shared<EventStream>();
  log.stored = last_sequence;
  absl::MutexLock lock(&mutex_);
  {
    absl::MutexLock stream_lock(&log.stream->mutex);
    log.stream->first = last_sequence + 1;
    log.stream->closed = closed_;
  }
  open_.emplace(job, std::move(log));
}

void EventLog::Forget(const std::string& job) {
  absl::MutexLock lock(&mutex_);
  open_.erase(job);
}

void EventLog::Append(JobChange change, std::function<void()> stored) {
  absl::MutexLock lock(&mutex_);
  const auto found = open_.find(change.job);
  if (found == open_.end() || found->second.ended) return;
  OpenLog& log = found->second;
  log.ended = change.row.has_value() && IsFinal(change.row->state());
  for (wan::v1::Event& event : change.events) {
    event.set_job(change.job);
    if (!event.has_time()) *event.mutable_time() = ToProto(clock_.Now());
  }
  log.appended = ++appended_;
  pending_.Add(std::move(change), std::move(stored));
}

void EventLog::Batch::Add(JobChange change, std::function<void()> on_stored) {
  changes.push_back(std::move(change));
  stored.push_back(std::move(on_stored));
}

void EventLog::Batch::Merge(JobChange change, std::function<void()> on_stored) {
  const auto found = std::find_if(changes.begin(), changes.end(),
                                  [&](const JobChange& other) { return other.job == change.job; });
  if (found == changes.end()) {
    Add(std::move(change), std::move(on_stored));
    return;
  }
  if (change.row.has_value()) found->row = std::move(change.row);
  if (change.report.has_value()) found->report = std::move(change.report);
  if (change.files.has_value()) found->files = std::move(change.files);
  found->labels_changed = found->labels_changed || change.labels_changed;
  for (wan::v1::Event& event : change.events) {
    const bool replaces =
        event.has_queued() && !found->events.empty() && found->events.back().has_queued();
    if (replaces) found->events.pop_back();
    found->events.push_back(std::move(event));
  }
  if (on_stored == nullptr) return;
  std::function<void()>& of_both = stored[static_cast<size_t>(found - changes.begin())];
  of_both = [first = std::move(of_both), second = std::move(on_stored)] {
    if (first != nullptr) first();
    second();
  };
}

void EventLog::Broadcast(const std::string& job, wan::v1::Event preview) {
  preview.set_job(job);
  preview.set_sequence(0);
  if (!preview.has_time()) *preview.mutable_time() = ToProto(clock_.Now());
  absl::MutexLock lock(&mutex_);
  previews_[job] = std::move(preview);
}

absl::Status EventLog::Flush() {
  absl::MutexLock lock(&mutex_);
  if (std::this_thread::get_id() != writer_.get_id()) {
    const uint64_t target = appended_;
    const auto done = [this, target]()
                          ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return attempted_ >= target; };
    mutex_.Await(absl::Condition(&done));
  }
  return write_status_;
}

void EventLog::Flush(const std::string& job, std::function<void(const absl::Status&)> done) {
  absl::Status status;
  {
    absl::MutexLock lock(&mutex_);
    const auto found = open_.find(job);
    if (found != open_.end()) {
      if (found->second.appended > attempted_) {
        waiters_.push_back({job, found->second.appended, std::move(done)});
        return;
      }
      status = found->second.refused;
    }
  }
  done(status);
}

std::vector<std::pair<EventLog::Waiter, absl::Status>> EventLog::TakeServed() {
  std::vector<std::pair<Waiter, absl::Status>> served;
  std::erase_if(waiters_, [&](Waiter& waiter) {
    mutex_.AssertHeld();
    if (waiter.target > attempted_) return false;
    const auto log = open_.find(waiter.job);
    served.emplace_back(std::move(waiter),
                        log == open_.end() ? absl::OkStatus() : log->second.refused);
    return true;
  });
  return served;
}

std::unique_ptr<EventCursor> EventLog::Watch(const std::string& job, int64_t after_sequence,
                                             std::function<void()> notify) {
  std::shared_ptr<EventStream> stream = FindStream(job);
  if (stream == nullptr) {
    stream = std::make_shared<EventStream>();
    absl::MutexLock lock(&stream->mutex);
    stream->first = kAllStored;
    stream->ended = true;
  }
  return std::unique_ptr<EventCursor>(new EventCursor(store_, job, std::move(stream),
                                                      std::min(after_sequence, kAllStored - 1),
                                                      std::move(notify), watchers_));
}

int64_t EventLog::LastSequence(const std::string& job) const {
  const std::shared_ptr<EventStream> stream = FindStream(job);
  if (stream == nullptr) return 0;
  absl::MutexLock lock(&stream->mutex);
  return stream->first + static_cast<int64_t>(stream->events.size()) - 1;
}

void EventLog::Close() {
  absl::MutexLock lock(&mutex_);
  closing_ = true;
}

std::shared_ptr<EventStream> EventLog::FindStream(const std::string& job) const {
  absl::MutexLock lock(&mutex_);
  const auto found = open_.find(job);
  return found == open_.end() ? nullptr : found->second.stream;
}

void EventLog::AwaitWork(bool refused) {
  const auto work = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return !pending_.changes.empty() || !previews_.empty() || stop_ || closing_ != closed_;
  };
  if (refused) {
    Clock& steady = clock_.Steady();
    steady.AwaitUntil(mutex_, absl::Condition(&work), steady.Now() + kRewriteDelay);
  } else {
    mutex_.Await(absl::Condition(&work));
  }
}

void EventLog::WriterLoop() {
  Batch refused;
  for (;;) {
    Batch batch = std::exchange(refused, {});
    const bool again = !batch.changes.empty();
    std::unordered_map<std::string, wan::v1::Event> previews;
    std::vector<std::shared_ptr<EventStream>> closing;
    uint64_t appended = 0;
    bool stop = false;
    {
      absl::MutexLock lock(&mutex_);
      AwaitWork(again);
      for (size_t i = 0; i < pending_.changes.size(); ++i) {
        batch.Add(std::move(pending_.changes[i]), std::move(pending_.stored[i]));
      }
      pending_ = {};
      Number(batch.changes);
      previews.swap(previews_);
      appended = appended_;
      stop = stop_;
      if (closing_ && !closed_) {
        closed_ = true;
        for (const auto& [job, log] : open_) closing.push_back(log.stream);
      }
    }

    absl::Status first_error;
    refused = WriteAll(std::move(batch), first_error);
    if (!again && !first_error.ok()) on_problem_(first_error);

    for (auto& [job, preview] : previews) {
      const std::shared_ptr<EventStream> stream = FindStream(job);
      if (stream == nullptr) continue;
      const auto shared = std::make_shared<const wan::v1::Event>(std::move(preview));
      ChangeAndNotify(*stream, [&](EventStream& held) {
        held.mutex.AssertHeld();
        for (const auto& cursor : held.cursors) cursor->preview = shared;
      });
    }
    for (const auto& stream : closing) {
      ChangeAndNotify(*stream, [](EventStream& held) {
        held.mutex.AssertHeld();
        held.closed = true;
      });
    }

    std::vector<std::pair<Waiter, absl::Status>> served;
    bool last = false;
    {
      absl::MutexLock lock(&mutex_);
      attempted_ = appended;
      write_status_ = first_error;
      served = TakeServed();
      last = stop && pending_.changes.empty();
    }
    for (const auto& [waiter, status] : served) waiter.done(status);
    if (last) return;
  }
}

void EventLog::Number(std::span<JobChange> changes) {
  std::unordered_map<std::string, int64_t> numbered;
  for (JobChange& change : changes) {
    const auto log = open_.find(change.job);
    if (log == open_.end()) continue;
    int64_t& sequence = numbered.emplace(change.job, log->second.stored).first->second;
    for (wan::v1::Event& event : change.events) event.set_sequence(++sequence);
  }
}

EventLog::Batch EventLog::WriteAll(Batch batch, absl::Status& first_error) {
  Batch refused;
  std::unordered_map<std::string, absl::Status> refused_jobs;
  for (size_t begin = 0; begin < batch.changes.size();) {
    const std::vector<absl::Status> results =
        Write(NextTransaction(std::span(batch.changes).subspan(begin)), refused_jobs);
    for (const absl::Status& result : results) {
      const size_t i = begin++;
      if (result.ok()) {
        FinishStored(batch.changes[i], batch.stored[i]);
        continue;
      }
      first_error.Update(result);
      NoteRefused(batch.changes[i].job, result);
      refused.Merge(std::move(batch.changes[i]), std::move(batch.stored[i]));
    }
  }
  return refused;
}

std::vector<absl::Status> EventLog::Write(std::span<const JobChange> changes,
                                          std::unordered_map<std::string, absl::Status>& refused) {
  const bool none_refused =
      std::none_of(changes.begin(), changes.end(),
                   [&](const JobChange& change) { return refused.contains(change.job); });
  if (none_refused && store_.Apply(changes).ok()) return std::vector<absl::Status>(changes.size());
  // Write the changes one by one, so that a change that the store never accepts delays only its own
  // job.
  std::vector<absl::Status> results;
  for (const JobChange& change : changes) {
    const auto before = refused.find(change.job);
    results.push_back(before != refused.end() ? before->second
                                              : store_.Apply(std::span(&change, 1)));
    if (!results.back().ok()) refused.emplace(change.job, results.back());
  }
  return results;
}

void EventLog::Show(const JobChange& change) {
  const std::shared_ptr<EventStream> stream = FindStream(change.job);
  if (stream == nullptr) return;
  const bool ended = change.row.has_value() && IsFinal(change.row->state());
  if (change.events.empty() && !ended) return;
  ChangeAndNotify(*stream, [&](EventStream& held) {
    held.mutex.AssertHeld();
    for (const wan::v1::Event& event : change.events) {
      held.events.push_back(std::make_shared<const wan::v1::Event>(event));
    }
    held.ended = held.ended || ended;
  });
}

void EventLog::FinishStored(const JobChange& change, const std::function<void()>& stored) {
  if (stored != nullptr) stored();
  Show(change);
  absl::MutexLock lock(&mutex_);
  const auto log = open_.find(change.job);
  if (log == open_.end()) return;
  if (change.row.has_value() && IsFinal(change.row->state())) {
    open_.erase(log);
    return;
  }
  log->second.refused = absl::OkStatus();
  if (!change.events.empty()) log->second.stored = change.events.back().sequence();
}

void EventLog::NoteRefused(const std::string& job, const absl::Status& problem) {
  absl::MutexLock lock(&mutex_);
  const auto log = open_.find(job);
  if (log != open_.end()) log->second.refused = problem;
}

}  // namespace wan::server
