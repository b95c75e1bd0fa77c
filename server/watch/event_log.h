// Keeps the event logs of all jobs. A watcher first reads the stored events, then gets the new ones
// when they happen.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "engine/api/clock.h"
#include "server/store/job_store.h"
#include "wan/v1/generation.pb.h"

namespace wan::server {

namespace internal {
struct EventStream;
struct CursorState;
}  // namespace internal

// Reads one job's log for one watcher. A reader asks for events, so a slow or vanished reader costs
// only the memory of a position and one preview. Not thread-safe.
class EventCursor {
 public:
  enum class Next {
    kEvent,    // an event was written to `*event`
    kPending,  // no event is there now; the log calls `notify` once when there may be an event
    kEnd,      // no more events will come; status() says why
  };

  EventCursor(const EventCursor&) = delete;
  EventCursor& operator=(const EventCursor&) = delete;
  // Waits for a call of `notify` that is running; `notify` is not called again. The function
  // `notify` itself may destroy the cursor.
  ~EventCursor();

  // Gets the next event; never waits for an event, but may read the store.
  Next TryNext(wan::v1::Event* event);

  // Call status() only after TryNext has returned kEnd. Returns OK if the job has ended and all its
  // events were delivered, UNAVAILABLE if the server is stopping, otherwise the store's error.
  const absl::Status& status() const { return status_; }

 private:
  friend class EventLog;
  EventCursor(JobStore& store, std::string job, std::shared_ptr<internal::EventStream> stream,
              int64_t after_sequence, std::function<void()> notify, std::atomic<int>& watchers);

  // Fills `page_` with stored events that are older than the stream's first one.
  absl::Status ReadPage(int64_t stream_first);

  JobStore& store_;
  std::atomic<int>& watchers_;  // the log's number of cursors
  const std::string job_;
  const std::shared_ptr<internal::EventStream> stream_;
  const std::shared_ptr<internal::CursorState> state_;
  int64_t next_;
  std::vector<wan::v1::Event> page_;
  size_t page_position_ = 0;
  absl::Status status_;
};

// Thread-safe. One thread writes the changes of all jobs in transactions of limited size, so Append
// never waits for the disk, and the store is never locked for long. Cursors see an event only when
// it is stored; previews are not stored. The log keeps changes that the store refuses, merges them
// to one for each job, and writes them again once a second or with the next change. Until the store
// accepts these changes, cursors see neither these changes nor later events of the job.
class EventLog {
 public:
  // `store` and `clock` must outlive the log, and the log must outlive its cursors. Calls
  // `on_problem` on the log's thread when the store refuses a write, once for consecutive refusals;
  // `on_problem` must not use the log.
  EventLog(JobStore& store, Clock& clock, std::function<void(const absl::Status&)> on_problem);
  EventLog(const EventLog&) = delete;
  EventLog& operator=(const EventLog&) = delete;
  // Writes the pending changes before it returns.
  ~EventLog();

  // Opens the log of a job that has not ended. `last_sequence` is the sequence of the job's newest
  // stored event; 0 for a new job.
  void Open(const std::string& job, int64_t last_sequence);
  // Reverts Open. Call this function if the store has not accepted the job.
  void Forget(const std::string& job);

  // Queues a change of a job whose log is open, and returns at once. Sets sequence and job of the
  // change's events, and their time if they have none. After a change to a final state, further
  // changes of the job are dropped. Calls `stored` on the log's thread, with no lock held, when the
  // store has the change and before cursors see it.
  void Append(JobChange change, std::function<void()> stored = nullptr);

  // Shows a preview to those cursors of the job that have read all stored events; does not store
  // the preview. A cursor that has not read the previous preview gets only the new preview.
  void Broadcast(const std::string& job, wan::v1::Event preview);

  // Calls `done` when the store has accepted or refused every earlier change of the job and cursors
  // see the accepted ones: with OK, or with the error of the refusal. Calls `done` once, on the
  // log's thread or, without anything to wait for, on the caller's thread; `done` must not block.
  void Flush(const std::string& job, std::function<void(const absl::Status&)> done);

  // Waits until the store has accepted or refused all earlier changes of all jobs. Returns the
  // first error of the latest write. Returns without waiting if Flush is called in `notify`.
  absl::Status Flush();

  // Returns a cursor over the job's events with a sequence greater than `after_sequence`. The job
  // must exist. The log calls `notify` on its thread with no lock held; `notify` must not block,
  // but it may use or destroy the cursor.
  std::unique_ptr<EventCursor> Watch(const std::string& job, int64_t after_sequence,
                                     std::function<void()> notify);

  // Returns the sequence of the job's newest stored event, which is the newest that cursors see; 0
  // if the job's log is not open.
  int64_t LastSequence(const std::string& job) const;

  // Returns how many cursors there are.
  int watchers() const { return watchers_; }

  // Ends every cursor with UNAVAILABLE when the cursor has read all events that exist. Append still
  // works after Close.
  void Close();

 private:
  // Changes, and for each the function to call when the change is stored.
  struct Batch {
    std::vector<JobChange> changes;
    std::vector<std::function<void()>> stored;

    void Add(JobChange change, std::function<void()> on_stored);
    // Merges the change with the batch's earlier change of the job, if there is one. Of consecutive
    // Queued events keeps only the last one, because no cursor has seen the earlier ones.
    void Merge(JobChange change, std::function<void()> on_stored);
  };
  // A call of Flush that waits.
  struct Waiter {
    std::string job;
    uint64_t target = 0;  // the value that attempted_ must reach
    std::function<void(const absl::Status&)> done;
  };
  // The log of a job that has not ended, or whose end is not stored yet.
  struct OpenLog {
    std::shared_ptr<internal::EventStream> stream;
    int64_t stored = 0;     // the sequence of the job's newest stored event
    uint64_t appended = 0;  // the value of appended_ after the job's latest change
    bool ended = false;     // whether the job's last change was appended
    // Why the store has refused the oldest pending change of the job; OK if the store has refused
    // no change.
    absl::Status refused;
  };

  void WriterLoop();
  // Waits for work; after a refused write, waits at most until the next retry.
  void AwaitWork(bool refused) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Writes the changes in one transaction or, if that fails, one by one, and returns the status of
  // each change. `refused` has the jobs with a refused change; the function adds jobs to it, and
  // writes no further change of such a job.
  std::vector<absl::Status> Write(std::span<const JobChange> changes,
                                  std::unordered_map<std::string, absl::Status>& refused);
  // Sets the sequences of the events of changes that are about to be written.
  void Number(std::span<JobChange> changes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Calls the `stored` of a change that is stored, shows the change to the job's cursors, and
  // forgets the job if it has ended.
  void FinishStored(const JobChange& change, const std::function<void()>& stored);
  void NoteRefused(const std::string& job, const absl::Status& problem);
  void Show(const JobChange& change);
  // Writes all changes and returns the changes that the store refused; stores the first refusal in
  // `first_error`.
  Batch WriteAll(Batch batch, absl::Status& first_error);
  // Removes and returns the calls of Flush that need not wait any more, each with its status.
  std::vector<std::pair<Waiter, absl::Status>> TakeServed() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::shared_ptr<internal::EventStream> FindStream(const std::string& job) const;

  JobStore& store_;
  Clock& clock_;
  const std::function<void(const absl::Status&)> on_problem_;
  std::atomic<int> watchers_ = 0;
  mutable absl::Mutex mutex_;
  std::unordered_map<std::string, OpenLog> open_ ABSL_GUARDED_BY(mutex_);
  Batch pending_ ABSL_GUARDED_BY(mutex_);
  // The latest preview of each job.
  std::unordered_map<std::string, wan::v1::Event> previews_ ABSL_GUARDED_BY(mutex_);
  uint64_t appended_ ABSL_GUARDED_BY(mutex_) = 0;  // number of changes that were ever appended
  // Number of changes that the store has accepted or refused.
  uint64_t attempted_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<Waiter> waiters_ ABSL_GUARDED_BY(mutex_);
  absl::Status write_status_ ABSL_GUARDED_BY(mutex_);
  bool closing_ ABSL_GUARDED_BY(mutex_) = false;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread writer_;
};

}  // namespace wan::server
