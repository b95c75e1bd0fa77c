// The connections to the job database: one that writes, two that read, and when which may wait.
#pragma once

#include <SQLiteCpp/SQLiteCpp.h>

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

namespace wan::server {

// Thread-safe. One thread of the object writes, another one syncs what was written, and callers
// read on their own threads over two connections that neither of them uses: in WAL mode a reader
// waits for no writer, no sync and no checkpoint. Short reads wait for short reads only, and scans
// for scans.
class JobDatabase {
 public:
  using Done = std::function<void(const absl::Status&)>;
  using Body = std::function<absl::Status(SQLite::Database&)>;
  using Opener = std::function<std::unique_ptr<SQLite::Database>()>;
  using Preparer = absl::Status (*)(SQLite::Database&, const std::string& where);

  struct Source {
    std::string file;
    std::string where;  // names the file in messages
    Opener open;        // may throw SQLite::Exception, as `open_to_read`
    Preparer prepare;
    // Called twice. Null: the connection that writes reads as well, as no other one can be had.
    Opener open_to_read = nullptr;
    std::function<absl::Status()> sync;  // makes durable what was written before
    const Clock& clock = SystemClock();  // measures how long the disk takes
  };

  // Errors as of SqliteStatus and `prepare`.
  static absl::StatusOr<std::unique_ptr<JobDatabase>> Open(Source source);
  JobDatabase(const JobDatabase&) = delete;
  JobDatabase& operator=(const JobDatabase&) = delete;
  // Finishes pending calls first: afterwards every `done` has been called. Then it brings the log
  // into the database, which takes two syncs; after a sync of more than a second it leaves the log,
  // which the next start reads, so that a process that was told to end does so in time.
  ~JobDatabase();

  // Calls `body` with the connection for short reads, as of one job, and turns SQLite's exceptions
  // into a status.
  template <typename ReadBody>
  auto Read(const ReadBody& body) -> decltype(body(std::declval<SQLite::Database&>())) {
    return ReadOver(reading_, body);
  }

  // The same for what looks at many jobs. One that scans again and again takes the lock again
  // before a reader that waits for it gets it, so that short reads must not share it.
  template <typename ReadBody>
  auto Scan(const ReadBody& body) -> decltype(body(std::declval<SQLite::Database&>())) {
    return ReadOver(scanning_, body);
  }

  // Calls `body` in a transaction on the writing thread, in the order of the calls, and commits if
  // it returns OK. Then calls `done`, on the writing or the syncing thread, which it must not
  // block: with the error, or once the change is durable. If the sync fails, `undo` is called
  // before `done`; null: nothing is to be done then.
  void Change(Body body, Done done, std::function<void(const absl::Status&)> undo = nullptr);

  // The same without a transaction of its own and without a sync: what a power cut undoes does no
  // harm.
  void Write(Body body, Done done);

  // Calls `body` at once, on the caller's thread. For `undo` only.
  absl::Status TakeBack(const Body& body);

  // Calls `done` with OK if the disk takes writes. After a sync that failed nothing is written any
  // more until this has brought the whole log into the database.
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

  // With the connection's lock held.
  template <typename GuardedBody>
  auto Guarded(Connection& connection, const GuardedBody& body)
      -> decltype(body(std::declval<SQLite::Database&>())) {
    try {
      return body(*connection.database);
    } catch (const SQLite::Exception& error) {
      return SqliteStatus(error, where_);
    }
  }
  absl::Status OnWriter(const Body& body);
  absl::Status Unsynced() const;
  // OK if writes may be tried.
  absl::Status CheckReady() const;
  absl::Status Sync();
  // Brings all of the log into the database after a sync that failed.
  absl::Status SaveLog(SQLite::Database& database);
  // Before the connections close.
  void KeepLogOnClose();

  const std::string where_;
  const std::function<absl::Status()> sync_file_;
  const Clock& clock_;
  std::unique_ptr<const SoleUse> sole_use_;
  FilePlace place_;
  Connection writing_;
  // No database: there is only the one that writes.
  Connection reading_;
  Connection scanning_;
  mutable absl::Mutex state_mutex_;
  // The reason why the latest writes may not be durable; OK otherwise.
  absl::Status unsynced_ ABSL_GUARDED_BY(state_mutex_);
  absl::Duration last_sync_ ABSL_GUARDED_BY(state_mutex_);
  // Always there before the destructor. The writer goes first, as it uses all others.
  std::optional<GroupSync> sync_;
  std::optional<SerialThread> writer_;
};

}  // namespace wan::server
