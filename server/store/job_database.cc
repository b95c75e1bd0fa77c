#include "server/store/job_database.h"

#include <sqlite3.h>

#include <optional>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "server/store/disk_wait.h"

namespace wan::server {
namespace {

// How long a checkpoint waits for readers to finish.
constexpr int kReadersTimeoutMs = 1000;

// If the last sync took longer than this, the destructor makes no more syncs.
constexpr absl::Duration kSlowSync = absl::Seconds(1);

}  // namespace

JobDatabase::JobDatabase(Source source)
    : where_(std::move(source.where)),
      sync_file_(std::move(source.sync)),
      clock_(source.clock),
      place_(source.file) {
  sync_.emplace([this] { return Sync(); });
  writer_.emplace();
}

JobDatabase::~JobDatabase() {
  writer_.reset();
  sync_.reset();
  const absl::MutexLock lock(&state_mutex_);
  // After a failed sync do not keep the log, because only a checkpoint can save its content.
  if (unsynced_.ok() && last_sync_ > kSlowSync) KeepLogOnClose();
}

void JobDatabase::KeepLogOnClose() {
  for (const Connection* connection : {&writing_, &reading_, &scanning_}) {
    if (connection->database == nullptr) continue;
    sqlite3_db_config(connection->database->getHandle(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1,
                      nullptr);
  }
}

absl::StatusOr<std::unique_ptr<JobDatabase>> JobDatabase::Open(Source source) {
  const std::string where = source.where;
  try {
    std::unique_ptr<SQLite::Database> writing = source.open();
    // Construct the FilePlace after `open`, because the file must exist.
    std::unique_ptr<JobDatabase> database(new JobDatabase(source));
    absl::StatusOr<std::unique_ptr<const SoleUse>> sole = SoleUse::Of(source.file, where);
    if (!sole.ok()) return sole.status();
    database->sole_use_ = *std::move(sole);
    if (absl::Status prepared = source.prepare(*writing, where); !prepared.ok()) return prepared;
    writing->setBusyTimeout(kReadersTimeoutMs);
    for (Connection* connection : {&database->reading_, &database->scanning_}) {
      if (source.open_to_read != nullptr) connection->database = source.open_to_read();
    }
    database->statements_.emplace(*writing);
    database->writing_.database = std::move(writing);
    return database;
  } catch (const SQLite::Exception& error) {
    return SqliteStatus(error, where);
  }
}

void JobDatabase::Change(Body body, Done done, Undo undo) {
  if (ChangeHere(body, done, undo)) return;
  writer_->Post([this, body = std::move(body), done = std::move(done), undo = std::move(undo)] {
    const absl::Status written = WriteChange(body);
    written.ok() ? AwaitSync(done, undo) : done(written);
  });
}

bool JobDatabase::ChangeHere(const Body& body, const Done& done, const Undo& undo) {
  DiskWait* const wait = DiskWait::OfThisThread();
  if (wait == nullptr || caller_writes_.exchange(true)) return false;
  absl::Status changed;
  std::optional<absl::Status> synced;
  {
    wait->Begin();
    const absl::Cleanup end = [&] {
      caller_writes_ = false;
      wait->End();
    };
    if (!writer_->TryRun([&] { changed = WriteChange(body); })) return false;
    if (changed.ok()) {
      synced = sync_->TrySync();
      if (!synced.has_value()) {
        AwaitSync(done, undo);
        return true;
      }
      changed = *synced;
    }
  }
  if (synced.has_value() && !synced->ok() && undo != nullptr) undo(*synced);
  done(changed);
  return true;
}

absl::Status JobDatabase::WriteChange(const Body& body) {
  if (absl::Status ready = CheckReady(); !ready.ok()) return ready;
  return OnWriter([&](Statements& statements) -> absl::Status {
    SQLite::Transaction transaction(statements);
    if (absl::Status status = body(statements); !status.ok()) return status;  // rolls back
    transaction.commit();
    return absl::OkStatus();
  });
}

void JobDatabase::AwaitSync(const Done& done, const Undo& undo) {
  sync_->Await([done, undo](const absl::Status& synced) {
    if (!synced.ok() && undo != nullptr) undo(synced);
    done(synced);
  });
}

void JobDatabase::Write(Body body, Done done) {
  writer_->Post([this, body = std::move(body), done = std::move(done)] {
    absl::Status written = CheckReady();
    if (written.ok()) written = OnWriter(body);
    done(written);
  });
}

absl::Status JobDatabase::TakeBack(const Body& body) { return OnWriter(body); }

void JobDatabase::CheckWritable(Done done) {
  writer_->Post([this, done = std::move(done)] {
    absl::Status written = place_.Check(where_);
    if (written.ok()) {
      written = OnWriter([&](SQLite::Database& database) -> absl::Status {
        WriteNothing(database);
        return Unsynced().ok() ? absl::OkStatus() : SaveLog(database);
      });
    }
    if (!written.ok()) {
      done(written);
      return;
    }
    sync_->Await(done);
  });
}

absl::Status JobDatabase::SaveLog(SQLite::Database& database) {
  SQLite::Statement checkpoint(database, "PRAGMA wal_checkpoint(TRUNCATE)");
  if (checkpoint.executeStep() && checkpoint.getColumn(0).getInt() != 0) return Unsynced();
  absl::MutexLock lock(&state_mutex_);
  unsynced_ = absl::OkStatus();
  return absl::OkStatus();
}

absl::Status JobDatabase::OnWriter(const Body& body) {
  absl::MutexLock lock(&writing_.mutex);
  return Guarded(writing_, [&](SQLite::Database& /*same*/) { return body(*statements_); });
}

absl::Status JobDatabase::Unsynced() const {
  absl::MutexLock lock(&state_mutex_);
  return unsynced_;
}

absl::Status JobDatabase::CheckReady() const {
  absl::Status unsynced = Unsynced();
  return unsynced.ok() ? place_.Check(where_) : unsynced;
}

absl::Status JobDatabase::Sync() {
  // Do not sync again after a failure: the second sync may succeed although the first has lost
  // data.
  if (absl::Status before = Unsynced(); !before.ok()) return before;
  const int64_t began = clock_.MonotonicNanos();
  absl::Status synced = sync_file_();
  absl::MutexLock lock(&state_mutex_);
  last_sync_ = absl::Nanoseconds(clock_.MonotonicNanos() - began);
  unsynced_.Update(synced);
  return synced;
}

}  // namespace wan::server
