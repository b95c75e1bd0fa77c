#include "engine/monitor/ticker.h"

#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace wan {

struct Ticker::State {
  Clock& clock;
  const absl::Duration interval;
  const std::function<void()> work;
  absl::Mutex mutex;
  bool stopping ABSL_GUARDED_BY(mutex) = false;
  bool ended ABSL_GUARDED_BY(mutex) = false;

  void Run() {
    absl::MutexLock lock(&mutex);
    Clock& steady = clock.Steady();
    while (!steady.AwaitUntil(mutex, absl::Condition(&stopping), steady.Now() + interval)) {
      mutex.Unlock();
      work();
      mutex.Lock();
    }
    ended = true;
  }
};

Ticker::Ticker(Clock& clock, absl::Duration interval, std::function<void()> work,
               absl::Duration patience)
    : patience_(patience),
      state_(new State{clock, interval, std::move(work), {}, false, false}),
      thread_([state = state_] { state->Run(); }) {}

Ticker::~Ticker() {
  bool ended = false;
  {
    absl::MutexLock lock(&state_->mutex);
    state_->stopping = true;
    ended = state_->mutex.AwaitWithTimeout(absl::Condition(&state_->ended), patience_);
  }
  if (ended) {
    thread_.join();
  } else {
    thread_.detach();
  }
}

}  // namespace wan
