// Holds the connections to the job database: one that writes and two that read.
#pragma once

#include <SQLiteCpp/SQLiteCpp.h>

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "engine/api/clock.h"
#include "server/store/database_files.h"
#include "server/store/group_sync.h"
#include "server/store/sqlite_schema.h"
#include "server/store/statements.h"

namespace wan::server {

// Thread-safe. One thread of the object writes, and another thread syncs the writes. Callers read
// on their own threads over two separate connections: in WAL mode a reader waits for no writer, no
// sync and no checkpoint. Short reads wait only for short reads, and scans only for scans.
class JobDatabase {
 public:
  using Done = std::function<void(const absl::Status&)>;
  using Body = std::function<absl::Status(Statements&)>;
  using Undo = std::function<void(const absl::Status&)>;
  using Opener = std::function<std::unique_ptr<SQLite::Database>()>;
  using Preparer = absl::Status (*)(SQLite::Database&, const std::string& where);

  struct Source {
    std::string file;
    std::string where;  // names the file in messages
    Opener open;        // opens a connection; may throw SQLite::Exception, like `open_to_read`
    Preparer prepare;
    // Open calls the function twice, once for each reading connection. Null: a second connection is
    // impossible, so reads use the writing connection.
    Opener open_to_read = nullptr;
    std::function<absl::Status()> sync;  // makes all earlier writes durable
    const Clock& clock = SystemClock();  // measures how long syncs take
  };

  // Returns the errors of `prepare`, and SQLite's errors as converted by SqliteStatus.
  static absl::StatusOr<std::unique_ptr<JobDatabase>> Open(Source source);
  JobDatabase(const JobDatabase&) = delete;
  JobDatabase& operator=(const JobDatabase&) = delete;
  // First finishes the pending calls: after that every `done` has been called. Then moves the log
  // into the database, which takes two syncs. If the last sync took more than a second, leaves the
  // log to the next start, so that the process ends in time.
  ~JobDatabase();

  // Calls `body` with the connection for short reads, for example of one job, and turns SQLite's
  // exceptions into a status.
  template <typename ReadBody>
  auto Read(const ReadBody& body) -> decltype(body(std::declval<SQLite::Database&>())) {
    return ReadOver(reading_, body);
  }

  // Like Read, for reads of many jobs. Scans have their own connection, because a caller that scans
  // in a loop takes the lock again before waiting readers get it.
  template <typename ReadBody>
  auto Scan(const ReadBody& body) -> decltype(body(std::declval<SQLite::Database&>())) {
    return ReadOver(scanning_, body);
  }

  // Calls `body` in a transaction, in the order of the calls, and commits if it returns OK. Then
  // calls `done` with the error, or with OK once the change is durable. If the sync fails, calls
  // `undo` (may be null) before `done`. Runs on the writing and the syncing thread, which `done`
  // must not block. If the calling thread may wait for the disk, all may run on the calling thread
  // before Change returns.
  void Change(Body body, Done done, Undo undo = nullptr);

  // Like Change, but without a transaction and without a sync, for changes that a power cut may
  // undo.
  void Write(Body body, Done done);

  // Calls `body` at once, on the calling thread. Call TakeBack only in `undo`.
  absl::Status TakeBack(const Body& body);

  // Calls `done` with OK if the disk takes writes. After a failed sync the object refuses all
  // writes until CheckWritable has moved the whole log into the database.
  void CheckWritable(Done done);

 private:
  struct Connection {
    absl::Mutex mutex;
    std::unique_ptr<SQLite::Database> database;
  };

  explicit JobDatabase(Source source);

  template <typename ReadBody>
  auto ReadOver(Connection& preferred, const ReadBody& body)
      -> decltype(body(std::declval<SQLite::Database&>())) {
    Connection& connection = preferred.database != nullptr ? preferred : writing_;
    absl::MutexLock lock(&connection.mutex);
    return Guarded(connection, body);
  }

  // Call Guarded with the connection's lock held.
  template <typename GuardedBody>
  auto Guarded(Connection& connection, const GuardedBody& body)
      -> decltype(body(std::declval<SQLite::Database&>())) {
    try {
      return body(*connection.database);
    } catch (const SQLite::Exception& error) {
      return SqliteStatus(error, where_);
    }
  }
  // Makes a change on the calling thread, if that thread may wait for the disk and no other change
  // is under way. Otherwise does nothing and returns false.
  bool ChangeHere(const Body& body, const Done& done, const Undo& undo);
  absl::Status WriteChange(const Body& body);
  void AwaitSync(const Done& done, const Undo& undo);
  absl::Status OnWriter(const Body& body);
  absl::Status Unsynced() const;
  // Returns OK if writes may be tried.
  absl::Status CheckReady() const;
  absl::Status Sync();
  // Moves the whole log into the database after a failed sync.
  absl::Status SaveLog(SQLite::Database& database);
  // Call KeepLogOnClose before the connections are closed.
  void KeepLogOnClose();

  const std::string where_;
  const std::function<absl::Status()> sync_file_;
  const Clock& clock_;
  std::unique_ptr<const SoleUse> sole_use_;
  FilePlace place_;
  Connection writing_;
  std::optional<Statements> statements_;  // guarded by the mutex of writing_
  // `reading_` and `scanning_` have no database if Source::open_to_read is null.
  Connection reading_;
  Connection scanning_;
  mutable absl::Mutex state_mutex_;
  // The error of a failed sync, until CheckWritable has made all writes durable; otherwise OK.
  absl::Status unsynced_ ABSL_GUARDED_BY(state_mutex_);
  absl::Duration last_sync_ ABSL_GUARDED_BY(state_mutex_);
  // Whether a caller's thread writes and syncs. Only one caller's thread at a time may write and
  // sync, so that at most one thread of all worker pools waits for the disk.
  std::atomic<bool> caller_writes_ = false;
  // Optional, so that the destructor can destroy the writer first, which uses the other members.
  std::optional<GroupSync> sync_;
  std::optional<SerialThread> writer_;
};

}  // namespace wan::server
