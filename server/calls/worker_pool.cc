#include "server/calls/worker_pool.h"

#include <deque>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "server/conversion/errors.h"
#include "server/store/disk_wait.h"

namespace wan::server {
namespace {

// The pool whose task the thread runs.
thread_local const WorkerPool* pool_of_this_thread = nullptr;

}  // namespace

WorkLimits WorkLimits::Same(int threads) {
  WorkLimits limits;
  limits.classes.fill({threads, threads});
  return limits;
}

WorkLimits WorkLimits::Standard() {
  WorkLimits limits;
  limits[WorkClass::kQuick] = {2, 1};
  limits[WorkClass::kPlans] = {2, 1};
  // Decode with one thread only, because decoding an image may take 400 MiB.
  limits[WorkClass::kDecoding] = {1, 1};
  limits[WorkClass::kStore] = {2, 1};
  // Read files with several threads, because a slow file system serves parallel reads as fast as
  // one.
  limits[WorkClass::kFiles] = {4, 2};
  return limits;
}

// The threads of one class, and the tasks that wait for a thread.
class WorkerPool::Line {
 public:
  Line(const WorkerPool& pool, const ClassLimits& limits) : pool_(pool), limits_(limits) {
    // The additional thread is for a task that waits for the disk; the store lets only one task
    // wait at a time.
    const int threads = limits.threads + 1;
    threads_.reserve(static_cast<size_t>(threads));
    for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { Loop(); });
  }

  void Post(Place place, const std::string& party, std::function<bool()> gone, Task task) {
    absl::MutexLock lock(&mutex_);
    Party& poster = parties_[party];
    Item item{std::move(gone), std::move(task)};
    if (place == Place::kFirst) {
      poster.waiting.push_front(std::move(item));
    } else {
      poster.waiting.push_back(std::move(item));
    }
    TakeTurn(party, poster);
  }

  void Stop() {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }

  // Ends the threads when all tasks are done. Post no tasks afterwards.
  void Close() {
    absl::MutexLock lock(&mutex_);
    closed_ = true;
  }

  void Join() {
    for (std::thread& thread : threads_) thread.join();
  }

 private:
  struct Item {
    std::function<bool()> gone;
    Task task;
  };
  struct Party {
    std::deque<Item> waiting;
    int running = 0;
    bool in_line = false;  // whether the party is in turns_
  };

  // Gives a task's place to another task while the first one waits for the disk.
  class Wait final : public DiskWait {
   public:
    explicit Wait(Line& line) : line_(line) {}
    // The party of the task that runs.
    std::string party;

   private:
    void Begin() override {
      absl::MutexLock lock(&line_.mutex_);
      line_.Leave(party);
    }
    void End() override {
      absl::MutexLock lock(&line_.mutex_);
      line_.Enter(line_.parties_[party]);
    }

    Line& line_;
  };

  void Enter(Party& party) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    ++running_;
    ++party.running;
  }

  void Leave(const std::string& name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    --running_;
    Party& party = parties_.at(name);
    --party.running;
    TakeTurn(name, party);
    if (party.running == 0 && party.waiting.empty()) parties_.erase(name);
  }

  void TakeTurn(const std::string& name, Party& party) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (party.in_line || party.waiting.empty() || party.running >= limits_.per_party) return;
    party.in_line = true;
    turns_.push_back(name);
  }

  void Loop() {
    pool_of_this_thread = &pool_;
    Wait wait(*this);
    const MayWaitForDisk may_wait(wait);
    const auto ready = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return (!turns_.empty() && running_ < limits_.threads) || closed_;
    };
    absl::MutexLock lock(&mutex_);
    for (;;) {
      mutex_.Await(absl::Condition(&ready));
      if (turns_.empty()) return;
      wait.party = std::move(turns_.front());
      turns_.pop_front();
      Party& party = parties_.at(wait.party);
      party.in_line = false;
      Item item = std::move(party.waiting.front());
      party.waiting.pop_front();
      Enter(party);
      TakeTurn(wait.party, party);
      const bool stopping = stopping_;
      mutex_.Unlock();
      Run(std::move(item), stopping);
      mutex_.Lock();
      Leave(wait.party);
    }
  }

  // Takes the item by value, so that the task is destroyed before Run returns.
  static void Run(Item item, bool stopping) {
    absl::Status turn;
    if (item.gone != nullptr && stopping) {
      turn = ServerStoppingError();
    } else if (item.gone != nullptr && item.gone()) {
      turn = absl::CancelledError("the caller is gone");
    }
    item.gone = nullptr;
    item.task(turn);
  }

  const WorkerPool& pool_;
  const ClassLimits limits_;
  absl::Mutex mutex_;
  int running_ ABSL_GUARDED_BY(mutex_) = 0;  // number of tasks, without those that wait for the
                                             // disk
  std::unordered_map<std::string, Party> parties_ ABSL_GUARDED_BY(mutex_);
  // The parties that may run a task now, each at most once.
  std::deque<std::string> turns_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

WorkerPool::WorkerPool(const WorkLimits& limits) {
  for (size_t i = 0; i < lines_.size(); ++i) {
    lines_[i] = std::make_unique<Line>(*this, limits.classes[i]);
  }
}

WorkerPool::~WorkerPool() {
  {
    // Wait for the tasks of all classes before closing any class, because a task may post to
    // another class.
    absl::MutexLock lock(&mutex_);
    const auto idle = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return unfinished_ == 0; };
    mutex_.Await(absl::Condition(&idle));
  }
  for (const auto& line : lines_) line->Close();
  for (const auto& line : lines_) line->Join();
}

bool WorkerPool::IsWorker() const { return pool_of_this_thread == this; }

std::shared_ptr<const void> WorkerPool::Keep() {
  absl::MutexLock lock(&mutex_);
  ++unfinished_;
  return {static_cast<const void*>(this), [this](const void* /*pool*/) {
            absl::MutexLock unlocked(&mutex_);
            --unfinished_;
          }};
}

void WorkerPool::Post(WorkClass work, const std::string& party, std::function<bool()> gone,
                      Task task) {
  PostAt(Place::kLast, work, party, std::move(gone), std::move(task));
}

void WorkerPool::PostNext(WorkClass work, const std::string& party, std::function<bool()> gone,
                          Task task) {
  PostAt(Place::kFirst, work, party, std::move(gone), std::move(task));
}

void WorkerPool::PostAt(Place place, WorkClass work, const std::string& party,
                        std::function<bool()> gone, Task task) {
  {
    absl::MutexLock lock(&mutex_);
    ++unfinished_;
  }
  lines_[static_cast<size_t>(work)]->Post(
      place, party, std::move(gone),
      [this, task = std::move(task)](const absl::Status& turn) mutable {
        task(turn);
        task = nullptr;  // destroy the task before the pool, which its captures use
        absl::MutexLock lock(&mutex_);
        --unfinished_;
      });
}

void WorkerPool::Stop() {
  for (const auto& line : lines_) line->Stop();
}

}  // namespace wan::server
