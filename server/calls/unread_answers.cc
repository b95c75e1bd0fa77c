#include "server/calls/unread_answers.h"

#include <iterator>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace wan::server {

// The state is a separate object because the timer's thread may use it after UnreadAnswers is
// destroyed.
struct UnreadAnswers::State {
  explicit State(const StallWatch::Options& watch_options) : options(watch_options) {}

  const StallWatch::Options options;
  std::string timer_key;  // set before the first call of WakeAt
  absl::Mutex mutex;
  // The oldest answer comes first, so the first entry has the earliest `end`.
  std::list<Answer> waiting ABSL_GUARDED_BY(mutex);
  // Answers that were reported as stalled and wait for End.
  std::list<Answer> told ABSL_GUARDED_BY(mutex);
  // Whether the timer has a time to wake at. The timer stays set after the oldest answer was read,
  // because new answers usually follow.
  bool armed ABSL_GUARDED_BY(mutex) = false;

  void Look() {
    absl::MutexLock lock(&mutex);
    armed = false;
    const absl::Time now = options.clock.Steady().Now();
    while (!waiting.empty() && waiting.front().end <= now) {
      told.splice(told.end(), waiting, waiting.begin());
      told.back().told = true;
      told.back().stalled();
    }
    if (!waiting.empty()) Arm();
  }

  void Arm() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    if (std::exchange(armed, true)) return;
    options.timer.WakeAt(timer_key, waiting.front().end);
  }
};

UnreadAnswers::UnreadAnswers(const StallWatch::Options& options)
    : state_(std::make_shared<State>(options)) {
  state_->timer_key = options.timer.Add([weak = std::weak_ptr<State>(state_)] {
    if (const auto state = weak.lock()) state->Look();
  });
}

UnreadAnswers::Entry UnreadAnswers::Begin(std::function<void()> stalled) {
  absl::MutexLock lock(&state_->mutex);
  const absl::Time end = state_->options.clock.Steady().Now() + state_->options.longest;
  state_->waiting.push_back({end, std::move(stalled), /*told=*/false});
  state_->Arm();
  return std::prev(state_->waiting.end());
}

void UnreadAnswers::End(Entry entry) {
  std::list<Answer> ended;
  absl::MutexLock lock(&state_->mutex);
  ended.splice(ended.end(), entry->told ? state_->told : state_->waiting, entry);
}

}  // namespace wan::server
