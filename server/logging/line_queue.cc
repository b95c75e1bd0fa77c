#include "server/logging/line_queue.h"

#include <atomic>
#include <deque>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace wan::server {

struct LineQueue::State {
  State(Write line_writer, Options queue_options)
      : write(std::move(line_writer)), options(std::move(queue_options)) {}

  void Loop();
  void Append(std::string line) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    bytes += static_cast<int64_t>(line.size());
    lines.push_back(std::move(line));
    ++taken;
  }
  // Whether the notice about dropped lines can be queued now.
  bool HasRoomAgain() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    return untold > 0 && bytes <= static_cast<int64_t>(options.most_bytes / 2);
  }

  const Write write;
  const Options options;
  std::function<std::string(int64_t)> notice;  // set before the thread starts
  absl::Mutex mutex;
  std::deque<std::string> lines ABSL_GUARDED_BY(mutex);
  // Bytes of `lines` and of the line that is being written; changed under the lock, but read
  // without it.
  std::atomic<int64_t> bytes = 0;
  int64_t taken ABSL_GUARDED_BY(mutex) = 0;
  int64_t written ABSL_GUARDED_BY(mutex) = 0;
  int64_t untold ABSL_GUARDED_BY(mutex) = 0;  // number of lines dropped since the last notice
  int64_t dropped ABSL_GUARDED_BY(mutex) = 0;
  bool gone ABSL_GUARDED_BY(mutex) = false;
  std::thread thread;  // used only by the LineQueue object, not by the thread itself
};

void LineQueue::State::Loop() {
  const auto ready = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    return gone || !lines.empty() || HasRoomAgain();
  };
  for (;;) {
    std::string line;
    {
      absl::MutexLock lock(&mutex);
      mutex.Await(absl::Condition(&ready));
      if (gone) return;
      if (HasRoomAgain()) Append(notice(std::exchange(untold, 0)));
      line = std::move(lines.front());
      lines.pop_front();
    }
    const int error = write(line);
    absl::MutexLock lock(&mutex);
    bytes -= static_cast<int64_t>(line.size());
    ++written;
    if (error != 0 && !gone && options.failed) options.failed(error);
  }
}

LineQueue::LineQueue(Write write, Clock& clock, Options options)
    : state_(std::make_shared<State>(std::move(write), std::move(options))),
      clock_(clock),
      last_lines_(state_->options.last_lines) {}

LineQueue::~LineQueue() {
  if (!state_->thread.joinable()) return;
  const bool all = Flush(last_lines_);
  {
    absl::MutexLock lock(&state_->mutex);
    state_->gone = true;
  }
  if (all) {
    state_->thread.join();
  } else {
    state_->thread.detach();
  }
}

void LineQueue::Start(std::function<std::string(int64_t)> notice) {
  state_->notice = std::move(notice);
  state_->thread = std::thread([state = state_] { state->Loop(); });
}

void LineQueue::Push(std::string line) {
  absl::MutexLock lock(&state_->mutex);
  const auto bytes = static_cast<int64_t>(line.size());
  // Once a line was dropped, drop all further lines until the notice is queued.
  if (state_->untold > 0 ||
      state_->bytes + bytes > static_cast<int64_t>(state_->options.most_bytes)) {
    ++state_->untold;
    ++state_->dropped;
    return;
  }
  state_->Append(std::move(line));
}

bool LineQueue::Flush(absl::Duration most) {
  absl::MutexLock lock(&state_->mutex);
  // Wait also for the notice about dropped lines, if one is due.
  const int64_t last = state_->taken + (state_->untold > 0 ? 1 : 0);
  const auto done = [this, last]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_->mutex) {
    return state_->written >= last;
  };
  Clock& steady = clock_.Steady();
  return steady.AwaitUntil(state_->mutex, absl::Condition(&done), steady.Now() + most);
}

int64_t LineQueue::dropped() const {
  absl::MutexLock lock(&state_->mutex);
  return state_->dropped;
}

int64_t LineQueue::waiting_bytes() const { return state_->bytes; }

}  // namespace wan::server
