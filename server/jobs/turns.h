// Gives one call at a time the turn at a key, without a waiting thread.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"

namespace wan::server {

// Carries a task out on a thread that may block for a moment, like the caller's. Any thread may
// call it, and it does not block. Every task is carried out.
using PostTask = std::function<void(std::function<void()> task)>;

// Has a step carried out, now or on another thread. `turn` is OK if the step is to work; otherwise
// the caller is gone or the server stops, and it only ends what it belongs to.
using PostStep = std::function<void(std::function<void(const absl::Status& turn)> step)>;

// Thread-safe. It must outlive its turns.
class Turns {
 private:
  class Holder;

 public:
  // A copy of this object holds the turn. When the last copy is destroyed, the next in line gets
  // it.
  using Turn = std::shared_ptr<const Holder>;

  // Calls `begin` with the turn at `key`: at once, if nobody has it, and otherwise posted when its
  // turn has come.
  void Take(const std::string& key, PostTask post, std::function<void(Turn)> begin);

  // The same for several keys, which are different and in ascending order.
  void TakeAll(std::vector<std::string> keys, PostTask post,
               std::function<void(std::vector<Turn>)> begin);

 private:
  struct Waiter {
    PostTask post;
    std::function<void(Turn)> begin;
  };
  class Holder {
   public:
    Holder(Turns& turns, std::string key) : turns_(turns), key_(std::move(key)) {}
    Holder(const Holder&) = delete;
    Holder& operator=(const Holder&) = delete;
    ~Holder() { turns_.PassOn(key_); }

   private:
    Turns& turns_;
    const std::string key_;
  };

  void PassOn(const std::string& key);

  absl::Mutex mutex_;
  // The waiting calls, by the key whose turn is taken.
  std::map<std::string, std::deque<Waiter>> taken_ ABSL_GUARDED_BY(mutex_);
};

// The blocking form of a call that posts tasks and ends by a callback: calls `begin` with both,
// carries the tasks out on this thread, and returns what `done` was given. Only for threads that
// may wait for the disk.
template <typename Result, typename Begin>
Result AwaitPosted(const Begin& begin) {
  struct State {
    absl::Mutex mutex;
    std::deque<std::function<void()>> tasks ABSL_GUARDED_BY(mutex);
    std::optional<Result> result ABSL_GUARDED_BY(mutex);
  };
  const auto state = std::make_shared<State>();
  begin(
      [state](std::function<void()> task) {
        absl::MutexLock lock(&state->mutex);
        state->tasks.push_back(std::move(task));
      },
      [state](Result result) {
        absl::MutexLock lock(&state->mutex);
        state->result = std::move(result);
      });
  for (;;) {
    std::function<void()> task;
    {
      absl::MutexLock lock(&state->mutex);
      const auto wanted = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(state->mutex) {
        return !state->tasks.empty() || state->result.has_value();
      };
      state->mutex.Await(absl::Condition(&wanted));
      if (state->tasks.empty()) return *std::move(state->result);
      task = std::move(state->tasks.front());
      state->tasks.pop_front();
    }
    task();
  }
}

}  // namespace wan::server
