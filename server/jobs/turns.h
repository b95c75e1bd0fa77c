// An asynchronous mutex for each key: calls that wait for a key are queued and occupy no thread.
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

// Runs every given task once, on a thread that may wait for the disk. Any thread may call PostTask,
// which does not block.
using PostTask = std::function<void(std::function<void()> task)>;

// Runs a step, at once or on another thread. The step receives OK if it should do its work. The
// step receives an error if the caller has gone or the server stops; then the step must only end
// the call.
using PostStep = std::function<void(std::function<void(const absl::Status& turn)> step)>;

// Thread-safe. The object must outlive its turns.
class Turns {
 private:
  class Holder;

 public:
  // Whoever has a turn holds its key like a lock. When the last copy is destroyed, the next waiting
  // call gets the turn.
  using Turn = std::shared_ptr<const Holder>;

  // Calls `begin` with the turn of `key`: at once if nobody holds it, otherwise in a task given to
  // `post`, after the calls that asked before.
  void Take(const std::string& key, PostTask post, std::function<void(Turn)> begin);

  // Takes the turns of several keys, which must be different and in ascending order (to avoid
  // deadlock).
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
  // For each key whose turn is held, the calls that wait for it.
  std::map<std::string, std::deque<Waiter>> taken_ ABSL_GUARDED_BY(mutex_);
};

// Blocking form of a call that takes a PostTask and a `done`: calls `begin(post, done)`, runs the
// posted tasks on this thread, and returns what `done` received. Use this function only on threads
// that may wait for the disk.
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
