// Holds the connections to the job database: one that writes and several that read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "engine/api/clock.h"
#include "server/postgres/connection.h"
#include "server/postgres/postgres_schema.h"

namespace wan::server {

// Thread-safe. One thread of the object writes; callers read on their own threads. A lost
// connection is replaced at the next use. While the database cannot be reached, calls fail with the
// reason STORAGE_UNAVAILABLE; one attempt to connect is made a second.
class PostgresDatabase {
 public:
  using Done = std::function<void(const absl::Status&)>;
  using Body = std::function<absl::Status(Connection&)>;

  // Says whether this server may use the database that names itself so.
  using Accept = std::function<absl::Status(const std::string& id)>;

  // Connects, takes the lock of SoleServer and migrates the schema. Fails with the error of
  // `accept` (may be null) before the database forgets the server that used it last. A database
  // that does not answer a statement within `patience` counts as away.
  static absl::StatusOr<std::unique_ptr<PostgresDatabase>> Open(
      const std::string& url, Clock& clock, const Accept& accept = nullptr,
      absl::Duration patience = kStatementPatience);
  PostgresDatabase(const PostgresDatabase&) = delete;
  PostgresDatabase& operator=(const PostgresDatabase&) = delete;
  // First finishes the pending changes: after that every `done` has been called. If the database is
  // away, they fail.
  ~PostgresDatabase();

  // Names the database in messages.
  const std::string& where() const { return where_; }

  // Calls `body` with a connection. It returns an absl::Status or an absl::StatusOr, which an error
  // of the connection replaces. `body` is called again over a new connection if the first one turns
  // out to be lost.
  template <typename ReadBody>
  auto Read(const ReadBody& body) -> std::invoke_result_t<ReadBody, Connection&> {
    for (bool again = true;; again = false) {
      absl::StatusOr<std::unique_ptr<Connection>> connection = Borrow();
      if (!connection.ok()) return connection.status();
      auto result = body(**connection);
      absl::Status status = (*connection)->TakeStatus();
      // The next connection to a database that hangs would cost as much time.
      const bool broken = (*connection)->lost() && !(*connection)->timed_out();
      GiveBack(*std::move(connection));
      if (status.ok()) return result;
      if (!broken || !again) return status;
      DropIdle();
    }
  }

  // Calls `body` in a transaction, in the order of the calls, and commits if it returns OK. Then
  // calls `done` with the error, or with OK once the change is durable. Changes that wait share one
  // transaction, up to a limit of `bytes` (about what the change writes); if one of them is
  // refused, each gets a transaction of its own, so `body` may be called several times. If the
  // connection is lost while the database commits, it is uncertain whether the change was made:
  // calls `uncertain` (may be null) before `done`. All of that happens on the writing thread, which
  // `done` must not block.
  void Change(Body body, Done done, std::function<void()> uncertain = nullptr, size_t bytes = 0);

  // Calls `body` in a transaction of its own before any later change or read, as soon as there is a
  // connection. Call it only in `uncertain`.
  void Owe(Body body);

 private:
  struct Task {
    Body body;
    Done done;
    std::function<void()> uncertain;
    size_t bytes = 0;
  };

  PostgresDatabase(std::string url, Clock& clock, absl::Duration patience)
      : url_(std::move(url)), clock_(clock), patience_(patience) {}

  absl::Status OpenFirst(const Accept& accept);
  void WriteLoop();
  // Returns the tasks of the next transaction, which it removes from the queue.
  std::vector<Task> TakeGroup() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Makes the changes of the tasks. Returns the error of the last transaction.
  absl::Status WriteGroup(std::span<Task> group);
  // Begins a transaction over a connection that has the lock.
  absl::Status Begin();
  absl::Status ConnectWriter();
  absl::Status PayDebts();
  // Runs the bodies; an error means that nothing was changed, unless `uncertain` is set.
  absl::Status Transact(std::span<const Task> group, bool& uncertain);

  // Lets one attempt a second reach the network.
  absl::StatusOr<std::unique_ptr<Connection>> Connect();
  // Waits for some seconds at most until fewer than kReaders connections are borrowed. After an OK
  // call GiveBack.
  absl::StatusOr<std::unique_ptr<Connection>> Borrow();
  // Closes a connection that is lost.
  void GiveBack(std::unique_ptr<Connection> connection);
  void DropIdle();

  const std::string url_;
  Clock& clock_;
  const absl::Duration patience_;
  std::string where_;
  std::unique_ptr<Connection> writing_;  // the writing thread uses it, and OpenFirst before
  SoleServer sole_;                      // the same

  absl::Mutex mutex_;
  std::vector<Task> tasks_ ABSL_GUARDED_BY(mutex_);
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<Body> debts_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<Connection>> idle_ ABSL_GUARDED_BY(mutex_);
  int borrowed_ ABSL_GUARDED_BY(mutex_) = 0;
  // Why the latest attempt to connect failed, and until when no other is made.
  absl::Status away_ ABSL_GUARDED_BY(mutex_);
  int64_t away_until_ ABSL_GUARDED_BY(mutex_) = 0;
  std::thread writer_;  // declared last: it uses the members above
};

}  // namespace wan::server
