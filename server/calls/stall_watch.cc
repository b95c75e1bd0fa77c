#include "server/calls/stall_watch.h"

#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace wan::server {

// The state is a separate object because the timer's thread may use it after the watch is
// destroyed.
struct StallWatch::State {
  State(const Options& watch_options, std::function<void()> on_stalled)
      : options(watch_options), stalled(std::move(on_stalled)) {}

  const Options options;
  const std::function<void()> stalled;
  std::string timer_key;  // set before the first call of WakeAt
  absl::Mutex mutex;
  // Start of the write in progress; infinite future: no write is in progress.
  absl::Time since ABSL_GUARDED_BY(mutex) = absl::InfiniteFuture();
  // Whether the timer has a time to wake at. The timer stays set when a write ends, because setting
  // it again for every short write would cost more.
  bool armed ABSL_GUARDED_BY(mutex) = false;
  bool stopped ABSL_GUARDED_BY(mutex) = false;

  void Look() {
    absl::MutexLock lock(&mutex);
    armed = false;
    if (stopped || since == absl::InfiniteFuture()) return;
    const absl::Time end = since + options.longest;
    if (options.clock.Steady().Now() >= end) return stalled();
    armed = true;
    options.timer.WakeAt(timer_key, end);
  }
};

StallWatch::StallWatch(const Options& options, std::function<void()> stalled)
    : state_(std::make_shared<State>(options, std::move(stalled))) {
  state_->timer_key = options.timer.Add([weak = std::weak_ptr<State>(state_)] {
    if (const auto state = weak.lock()) state->Look();
  });
}

StallWatch::~StallWatch() {
  Stop();
  state_->options.timer.Remove(state_->timer_key);
}

void StallWatch::Begin() {
  absl::MutexLock lock(&state_->mutex);
  state_->since = state_->options.clock.Steady().Now();
  if (std::exchange(state_->armed, true)) return;
  state_->options.timer.WakeAt(state_->timer_key, state_->since + state_->options.longest);
}

void StallWatch::End() {
  absl::MutexLock lock(&state_->mutex);
  state_->since = absl::InfiniteFuture();
}

void StallWatch::Stop() {
  absl::MutexLock lock(&state_->mutex);
  state_->stopped = true;
}

}  // namespace wan::server
