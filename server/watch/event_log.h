// The event logs of all jobs. Watchers first read stored events, then get new ones live.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
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

// One reader of one job's log. The reader asks for events, so a slow or vanished reader costs only
// its position and one preview. Not thread-safe.
class EventCursor {
 public:
  enum class Next {
    kEvent,    // an event was written to the argument
    kPending,  // none now; `notify` will be called once when there may be one
    kEnd,      // no more events will come; see status()
  };

  EventCursor(const EventCursor&) = delete;
  EventCursor& operator=(const EventCursor&) = delete;
  // Waits for a running `notify`, which is not called again. `notify` itself may destroy the
  // cursor.
  ~EventCursor();

  // Never waits for an event, but may read the store.
  Next TryNext(wan::v1::Event* event);

  // Call it after kEnd. Returns OK if the job has ended and all its events were delivered,
  // UNAVAILABLE if the server is stopping, or else the error of the store.
  const absl::Status& status() const { return status_; }

 private:
  friend class EventLog;
  EventCursor(JobStore& store, std::string job, std::shared_ptr<internal::EventStream> stream,
              int64_t after_sequence, std::function<void()> notify, std::atomic<int>& watchers);

  // Fills `page_` with stored events from before the stream's first one.
  absl::Status ReadPage(int64_t stream_first);

  JobStore& store_;
  std::atomic<int>& watchers_;  // number of cursors of the log
  const std::string job_;
  const std::shared_ptr<internal::EventStream> stream_;
  const std::shared_ptr<internal::CursorState> state_;
  int64_t next_;
  std::vector<wan::v1::Event> page_;
  size_t page_position_ = 0;
  absl::Status status_;
};

// Thread-safe. One thread writes the changes of all jobs in transactions of bounded size, so Append
// never waits for the disk, and the store is never locked for long. Cursors see an event only once
// it is stored; previews are not stored. Refused changes are kept, merged to one per job, and
// written again once a second or with the next change. Until then cursors see neither them nor
// later events of the job.
class EventLog {
 public:
  // `store` and `clock` must outlive the log, and the log must outlive its cursors. `on_problem` is
  // called on the log's thread with the first of consecutive refused writes; it must not use the
  // log.
  EventLog(JobStore& store, Clock& clock, std::function<void(const absl::Status&)> on_problem);
  EventLog(const EventLog&) = delete;
  EventLog& operator=(const EventLog&) = delete;
  // Writes pending changes before it returns.
  ~EventLog();

  // Opens the log of a job that has not ended. `last_sequence` is the sequence of its newest stored
  // event, 0 for a new job.
  void Open(const std::string& job, int64_t last_sequence);
  // Undoes Open; call it if the job could not be stored.
  void Forget(const std::string& job);

  // Queues a change of an open job and returns at once. Fills in the sequence and job of its
  // events, and their time if unset. Changes after one to a final state are dropped. `stored` is
  // called on the log's thread, with no lock held, once the store has the change, and before
  // cursors see it.
  void Append(JobChange change, std::function<void()> stored = nullptr);

  // Shows a preview to the job's cursors that follow live, and does not store it. A cursor that has
  // not read the previous one sees only this one.
  void Broadcast(const std::string& job, wan::v1::Event preview);

  // Calls `done` once the store has accepted or refused every earlier change of the job and cursors
  // see the accepted ones: with OK, or with the error of the refusal. `done` is called once, on the
  // log's thread or, if there is nothing to wait for, on the caller's; it must not block.
  void Flush(const std::string& job, std::function<void(const absl::Status&)> done);

  // Waits until the store has accepted or refused all earlier changes of all jobs. Returns the
  // first error of the latest write. Does not wait if called in `notify`.
  absl::Status Flush();

  // Returns a cursor over the job's events with a sequence greater than `after_sequence`. The job
  // must exist. `notify` is called on the log's thread with no lock held; it must not block, and it
  // may use or destroy the cursor.
  std::unique_ptr<EventCursor> Watch(const std::string& job, int64_t after_sequence,
                                     std::function<void()> notify);

  // Returns the sequence of the newest stored event, which is the newest that cursors see; 0 if the
  // job is not open.
  int64_t LastSequence(const std::string& job) const;

  // Returns how many cursors there are.
  int watchers() const { return watchers_; }

  // Ends every cursor with UNAVAILABLE once it has read the events that exist. Append still works.
  void Close();

 private:
  // Changes, and the callback of each.
  struct Batch {
    std::vector<JobChange> changes;
    std::vector<std::function<void()>> stored;

    void Add(JobChange change, std::function<void()> on_stored);
    // Merges the change with the job's change in the batch, if any. Keeps only the last of
    // consecutive Queued events, because no cursor has seen the others.
    void Merge(JobChange change, std::function<void()> on_stored);
  };
  // A waiting call of Flush.
  struct Waiter {
    std::string job;
    uint64_t target = 0;  // value that attempted_ must reach
    std::function<void(const absl::Status&)> done;
  };
  // The log of a job that has not ended or whose end is not stored yet.
  struct OpenLog {
    std::shared_ptr<internal::EventStream> stream;
    int64_t stored = 0;     // sequence of the newest stored event
    uint64_t appended = 0;  // appended_ after its latest change
    bool ended = false;     // whether its last change was appended
    // Why the store has refused the job's oldest pending change; OK if it has not.
    absl::Status refused;
  };

  void WriterLoop();
  // Waits for work, but after a refused write at most until the next retry.
  void AwaitWork(bool refused) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Writes changes, first in one transaction, then one by one, and returns the status of each.
  // `refused` has the jobs with a refused change, and is extended: no change of a job is written
  // after a refused one.
  std::vector<absl::Status> Write(std::span<const JobChange> changes,
                                  std::unordered_map<std::string, absl::Status>& refused);
  // Sets the sequences of the events of changes that are about to be written.
  void Number(std::span<JobChange> changes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Calls `stored`, shows the change to the job's cursors, and forgets the job if it has ended.
  void FinishStored(const JobChange& change, const std::function<void()>& stored);
  void NoteRefused(const std::string& job, const absl::Status& problem);
  void Show(const JobChange& change);
  // Writes all changes and returns the refused ones; `first_error` is the first refusal.
  Batch WriteAll(Batch batch, absl::Status& first_error);
  // Removes and returns the calls of Flush that are done, each with its status.
  std::vector<std::pair<Waiter, absl::Status>> TakeServed() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::shared_ptr<internal::EventStream> FindStream(const std::string& job) const;

  JobStore& store_;
  Clock& clock_;
  const std::function<void(const absl::Status&)> on_problem_;
  std::atomic<int> watchers_ = 0;
  mutable absl::Mutex mutex_;
  std::unordered_map<std::string, OpenLog> open_ ABSL_GUARDED_BY(mutex_);
  Batch pending_ ABSL_GUARDED_BY(mutex_);
  std::unordered_map<std::string, wan::v1::Event> previews_ ABSL_GUARDED_BY(mutex_);  // latest
  uint64_t appended_ ABSL_GUARDED_BY(mutex_) = 0;   // changes ever appended
  uint64_t attempted_ ABSL_GUARDED_BY(mutex_) = 0;  // of these, accepted or refused by the store
  std::vector<Waiter> waiters_ ABSL_GUARDED_BY(mutex_);
  absl::Status write_status_ ABSL_GUARDED_BY(mutex_);
  bool closing_ ABSL_GUARDED_BY(mutex_) = false;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread writer_;
};

}  // namespace wan::server
