// Threads for the blocking work of calls: plans, durable writes, reads of the store and of files.
// The threads of gRPC and of the HTTP server stay free.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "server/auth/method_rules.h"

namespace wan::server {

// Most tasks of a class that run at a time.
struct ClassLimits {
  int threads = 1;
  // Most of these of one party, so that it cannot take every thread.
  int per_party = 1;
};

struct WorkLimits {
  ClassLimits& operator[](WorkClass work) { return classes[static_cast<size_t>(work)]; }
  const ClassLimits& operator[](WorkClass work) const { return classes[static_cast<size_t>(work)]; }
  // The same for every class, without a limit for parties.
  static WorkLimits Same(int threads);
  // The limits of a server (docs/operate/limits.md).
  static WorkLimits Standard();

  std::array<ClassLimits, kWorkClasses> classes;
};

// Thread-safe. Each class of work has threads of its own, so that none waits for another. Within a
// class the parties take turns, whatever each of them posts; the tasks of one party begin in the
// order of their posting.
class WorkerPool {
 public:
  // The status that a task gets when its turn comes: OK if it must work; CANCELLED if its caller is
  // gone; UNAVAILABLE (SERVER_STOPPING) after Stop. In the last two cases it only ends its call
  // with that status.
  using Task = std::function<void(const absl::Status& turn)>;

  explicit WorkerPool(const WorkLimits& limits);
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;
  // Runs what was posted, also by tasks meanwhile, and joins the threads.
  ~WorkerPool();

  // The task takes the turn of `party` (Call::party). `gone` is asked at the turn whether the
  // caller is gone; null: the task always works, also after Stop.
  void Post(WorkClass work, const std::string& party, std::function<bool()> gone, Task task);

  // The same before all that the party has waiting. For work that goes on in steps: others have
  // their turn between two steps, but the party begins nothing new meanwhile, so that it holds what
  // one of its tasks has made so far, and not what all of them have.
  void PostNext(WorkClass work, const std::string& party, std::function<bool()> gone, Task task);

  // For calls that wait for the disk and continue on the pool: the pool's destructor waits until
  // the returned object is destroyed.
  std::shared_ptr<const void> Keep();

  // Tasks that wait for their turn, and those that are posted from now on, are told that the server
  // stops, unless they always work. Does not wait for running tasks. Idempotent.
  void Stop();

 private:
  class Line;
  enum class Place { kLast, kFirst };

  void PostAt(Place place, WorkClass work, const std::string& party, std::function<bool()> gone,
              Task task);

  absl::Mutex mutex_;
  int64_t unfinished_ ABSL_GUARDED_BY(mutex_) = 0;  // tasks that wait or run, and calls of Keep
  std::array<std::unique_ptr<Line>, kWorkClasses> lines_;
};

}  // namespace wan::server
