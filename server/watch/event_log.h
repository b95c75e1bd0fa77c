// What watchers read: the log of every job, replayed from the store and followed live.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
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

// One reader of one job's log. Pull based: a reader that is slow, or never comes back, costs one
// position and at most one preview. One thread at a time, except for what the notify callback says.
class EventCursor {
 public:
  enum class Next {
    kEvent,    // an event was written to the argument
    kPending,  // nothing yet; the notify callback will be called once when there may be more
    kEnd,      // no more events will come; see status()
  };

  EventCursor(const EventCursor&) = delete;
  EventCursor& operator=(const EventCursor&) = delete;
  // Once this returns the notify callback is not running and will not run again, except that the
  // callback itself may destroy the cursor.
  ~EventCursor();

  // Never waits for the job; may read the store.
  Next TryNext(wan::v1::Event* event);

  // After kEnd: OK when the job has ended and everything was delivered, UNAVAILABLE when the server
  // is stopping, else why the store could not be read.
  const absl::Status& status() const { return status_; }

 private:
  friend class EventLog;
  EventCursor(JobStore& store, std::string job, std::shared_ptr<internal::EventStream> stream,
              int64_t after_sequence, std::function<void()> notify);

  // Fills `page_` with stored events before the stream's first.
  absl::Status ReadPage(int64_t stream_first);

  JobStore& store_;
  const std::string job_;
  const std::shared_ptr<internal::EventStream> stream_;
  const std::shared_ptr<internal::CursorState> state_;
  int64_t next_;
  std::vector<wan::v1::Event> page_;
  size_t page_position_ = 0;
  absl::Status status_;
};

// Thread-safe. Changes are written by one thread, many at a time, so that whoever reports progress
// never waits for the disk; events are shown to cursors only after they were written. When the
// store refuses a write the events are shown all the same, and written again with what follows.
class EventLog {
 public:
  // Store and clock must outlive the log, and the log its cursors. `on_problem` hears of the first
  // of a row of writes that the store refuses; it must not use the log.
  EventLog(JobStore& store, Clock& clock, std::function<void(const absl::Status&)> on_problem);
  EventLog(const EventLog&) = delete;
  EventLog& operator=(const EventLog&) = delete;
  // Writes what is pending.
  ~EventLog();

  // Begins the log of a job that has not ended and of which `last_sequence` events are stored.
  void Open(const std::string& job, int64_t last_sequence);
  // Undoes Open for a job that was not stored after all.
  void Forget(const std::string& job);

  // Queues a change of an open job. Its events get their sequence, job name and, where unset, time.
  // A change whose row has a final state closes the job's log: what comes later is dropped.
  // `stored` is called, with no lock held, once the store has the change.
  void Append(JobChange change, std::function<void()> stored = nullptr);

  // Shows a preview to the job's live cursors. It is not kept; a cursor that has not fetched the
  // one before sees only the later.
  void Broadcast(const std::string& job, wan::v1::Event preview);

  // Waits until everything that was appended before has been written and shown; the error of the
  // last attempt if it could not be written. Does not wait when a notify callback calls it.
  absl::Status Flush();

  // Reads the job's events with a sequence greater than `after_sequence`. The job must exist.
  // `notify` is called on the log's thread with no lock held; it must not block, and may use or
  // destroy the cursor.
  std::unique_ptr<EventCursor> Watch(const std::string& job, int64_t after_sequence,
                                     std::function<void()> notify);

  // Sequence of the newest event of an open job that cursors can see; 0 if it is not open.
  int64_t LastSequence(const std::string& job) const;

  // Ends all cursors with UNAVAILABLE, once they have read what there is. Appends still work.
  void Close();

 private:
  // Changes, and for each of them what is called once it is stored.
  struct Batch {
    std::vector<JobChange> changes;
    std::vector<std::function<void()>> stored;
  };
  // The log of a job that has not ended, or whose end is not stored yet.
  struct OpenLog {
    std::shared_ptr<internal::EventStream> stream;
    int64_t assigned = 0;  // sequence of the newest event, shown or not
    bool ended = false;    // its last change was appended
  };

  void WriterLoop();
  // Waits for work, or for the time to write again what the store refused.
  void AwaitWork(bool refused) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Writes changes, all at once if the store takes them so; returns what became of each. Behind a
  // refused change no other of its job is written.
  std::vector<absl::Status> Write(const std::vector<JobChange>& changes);
  // Shows a change to the job's cursors.
  void Show(const JobChange& change);
  // Calls `stored` and forgets the job if it has ended.
  void FinishStored(const JobChange& change, const std::function<void()>& stored);
  std::shared_ptr<internal::EventStream> FindStream(const std::string& job) const;

  JobStore& store_;
  Clock& clock_;
  const std::function<void(const absl::Status&)> on_problem_;
  mutable absl::Mutex mutex_;
  std::unordered_map<std::string, OpenLog> open_ ABSL_GUARDED_BY(mutex_);
  Batch pending_ ABSL_GUARDED_BY(mutex_);
  std::unordered_map<std::string, wan::v1::Event> previews_ ABSL_GUARDED_BY(mutex_);  // latest
  uint64_t appended_ ABSL_GUARDED_BY(mutex_) = 0;   // changes ever appended
  uint64_t attempted_ ABSL_GUARDED_BY(mutex_) = 0;  // of these, handed to the store and shown
  absl::Status write_status_ ABSL_GUARDED_BY(mutex_);
  bool closing_ ABSL_GUARDED_BY(mutex_) = false;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread writer_;
};

}  // namespace wan::server
