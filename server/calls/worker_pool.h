// Runs the blocking work of calls (planning, durable writes, reads of the store and of files), so
// that the threads of gRPC and of the HTTP server do not block.
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

// Maximum number of tasks of a class that run at a time; each has its own thread.
struct ClassLimits {
  int threads = 1;
  // Maximum number of tasks of one party (Call::party) that run at a time, so that no party can
  // take every thread.
  int per_party = 1;
};

struct WorkLimits {
  ClassLimits& operator[](WorkClass work) { return classes[static_cast<size_t>(work)]; }
  const ClassLimits& operator[](WorkClass work) const { return classes[static_cast<size_t>(work)]; }
  // Returns the same number of threads for every class, with no limit per party.
  static WorkLimits Same(int threads);
  // Returns the limits of a real server (docs/operate/limits.md).
  static WorkLimits Standard();

  std::array<ClassLimits, kWorkClasses> classes;
};

// Thread-safe. Each class of work has threads of its own, so that no class waits for another.
// Within a class the parties take turns, however many tasks each posts; the tasks of one party
// begin in the order in which they were posted. While a task waits for the disk in the store
// (server/store/disk_wait.h), it counts neither for its class nor for its party.
class WorkerPool {
 public:
  // A task receives OK if it must do its work, CANCELLED if its caller has gone, and UNAVAILABLE
  // (SERVER_STOPPING) after Stop. After CANCELLED or UNAVAILABLE, the task must end its call with
  // the status it received and do nothing else.
  using Task = std::function<void(const absl::Status& turn)>;

  explicit WorkerPool(const WorkLimits& limits);
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;
  // Runs all posted tasks, including those that running tasks post, and joins the threads.
  ~WorkerPool();

  // Posts a task that is charged to `party` (Call::party). Before the task runs, a thread of the
  // pool calls `gone`, which says whether the caller has gone; if `gone` is null, the task always
  // receives OK, even after Stop.
  void Post(WorkClass work, const std::string& party, std::function<bool()> gone, Task task);

  // Like Post, but puts the task before all waiting tasks of the party. Use PostNext for the next
  // step of a task that works in steps: other parties run between two steps, but this party
  // finishes one task before it begins another, so that only one task holds intermediate results.
  void PostNext(WorkClass work, const std::string& party, std::function<bool()> gone, Task task);

  // Whether the calling thread runs a task of this pool.
  bool IsWorker() const;

  // The pool's destructor waits until the returned object is destroyed. Use Keep for calls that
  // wait for the disk and then continue on the pool.
  std::shared_ptr<const void> Keep();

  // Tasks that wait and tasks that are posted later receive UNAVAILABLE (SERVER_STOPPING), unless
  // their `gone` is null. Does not wait for running tasks. Later calls do nothing.
  void Stop();

 private:
  class Line;
  enum class Place { kLast, kFirst };

  void PostAt(Place place, WorkClass work, const std::string& party, std::function<bool()> gone,
              Task task);

  absl::Mutex mutex_;
  int64_t unfinished_ ABSL_GUARDED_BY(mutex_) =
      0;  // number of waiting and running tasks, and of living results of Keep
  std::array<std::unique_ptr<Line>, kWorkClasses> lines_;
};

}  // namespace wan::server
