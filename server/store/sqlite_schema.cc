#include "server/store/sqlite_schema.h"

#include <sqlite3.h>

#include <iterator>
#include <system_error>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "engine/api/errors.h"
#include "server/conversion/errors.h"
#include "server/store/database_files.h"
#include "server/store/job_keys.h"

namespace wan::server {
namespace {

// Step N of the list takes a database from version N to N + 1. A step never changes once it was
// released.
constexpr const char* kMigrations[] = {
    R"sql(
CREATE TABLE jobs (
  number INTEGER PRIMARY KEY AUTOINCREMENT,  -- order of acceptance
  name TEXT NOT NULL UNIQUE,                 -- jobs/ID
  state INTEGER NOT NULL,                    -- wan.v1.JobState
  request_id TEXT UNIQUE,                    -- NULL: none
  request_digest TEXT NOT NULL,              -- SHA-256 of the request as asked for
  tied_to_caller INTEGER NOT NULL,
  job BLOB NOT NULL                          -- wan.v1.Job
);
CREATE INDEX jobs_by_state ON jobs (state, number);
CREATE TABLE events (
  job INTEGER NOT NULL REFERENCES jobs (number),
  sequence INTEGER NOT NULL,
  event BLOB NOT NULL,                       -- wan.v1.Event
  PRIMARY KEY (job, sequence)
) WITHOUT ROWID;
CREATE TABLE reports (
  job INTEGER PRIMARY KEY REFERENCES jobs (number),
  report BLOB NOT NULL                       -- wan.v1.JobReport, of the latest attempt
);
CREATE TABLE images (
  job INTEGER PRIMARY KEY REFERENCES jobs (number),
  image BLOB NOT NULL                        -- PNG, JPEG or WebP file, until the job has ended
);
)sql",
    R"sql(
CREATE TABLE damaged_jobs (                  -- rows of jobs that could not be read, as they were
  number INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  state,
  request_id UNIQUE,
  request_digest,
  tied_to_caller,
  job,
  reason TEXT NOT NULL                       -- what is wrong with it
);
)sql",
    // Jobs without an owner, from servers that did not authenticate callers, keep their plain
    // request_id. Other jobs get 'OWNER<newline>REQUEST_ID', so that the column is unique for each
    // owner.
    R"sql(
ALTER TABLE jobs ADD COLUMN owner TEXT NOT NULL DEFAULT '';
CREATE INDEX jobs_by_owner ON jobs (owner, number);
CREATE INDEX jobs_by_owner_and_state ON jobs (owner, state, number);
)sql",
    R"sql(
CREATE TABLE job_keys (                      -- by what jobs are listed, in rows that are quick to read
  job INTEGER PRIMARY KEY REFERENCES jobs (number),
  state INTEGER NOT NULL,
  model TEXT NOT NULL,
  owner TEXT NOT NULL,
  priority INTEGER NOT NULL,
  create_time INTEGER NOT NULL,              -- microseconds since the epoch
  end_time INTEGER NOT NULL                  -- the same; 2^63 - 1 until the job has ended
);
CREATE INDEX job_keys_by_state ON job_keys (state, job);
CREATE INDEX job_keys_by_model ON job_keys (model, job);
CREATE INDEX job_keys_by_owner ON job_keys (owner, job);
CREATE INDEX job_keys_by_end ON job_keys (end_time, job);
CREATE INDEX job_keys_by_priority ON job_keys (priority, job);
CREATE TABLE job_labels (
  job INTEGER NOT NULL REFERENCES jobs (number),
  key TEXT NOT NULL,
  value TEXT NOT NULL,
  PRIMARY KEY (job, key)
) WITHOUT ROWID;
CREATE TABLE removed_jobs (                  -- the latest names of jobs that were removed
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  name TEXT NOT NULL UNIQUE
);
)sql",
    R"sql(
CREATE TABLE job_files (                     -- what the model of a job's latest attempt was read from
  job INTEGER NOT NULL REFERENCES jobs (number),
  name TEXT NOT NULL,                        -- as in wan.v1.ModelFile
  size_bytes INTEGER NOT NULL,
  digest_key TEXT NOT NULL,                  -- of the file of digests
  PRIMARY KEY (job, name)
) WITHOUT ROWID;
)sql",
    R"sql(
CREATE TABLE webhooks (                      -- reports of jobs' ends that were not delivered yet
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  job BLOB NOT NULL,                         -- wan.v1.Job as it ended, without its prompts
  attempts INTEGER NOT NULL,
  due INTEGER NOT NULL                       -- the next attempt, microseconds since the epoch
);
CREATE INDEX webhooks_by_due ON webhooks (due, number);
)sql",
    // Two tables count the space that ended jobs take; triggers update them with every change of
    // job_keys.
    R"sql(
ALTER TABLE job_keys ADD COLUMN ended INTEGER NOT NULL DEFAULT 0;  -- order of the ends in a state; 0: not ended
ALTER TABLE job_keys ADD COLUMN file_bytes INTEGER NOT NULL DEFAULT 0;   -- of artifacts that are there
ALTER TABLE job_keys ADD COLUMN entry_bytes INTEGER NOT NULL DEFAULT 0;  -- of rows, events and report
CREATE INDEX job_keys_by_ended ON job_keys (state, ended) WHERE ended > 0;
CREATE INDEX job_keys_by_age ON job_keys (state, end_time) WHERE ended > 0;
CREATE INDEX job_keys_with_files_by_ended ON job_keys (state, ended)
  WHERE ended > 0 AND file_bytes > 0;
CREATE INDEX job_keys_with_files_by_age ON job_keys (state, end_time)
  WHERE ended > 0 AND file_bytes > 0;
CREATE TABLE ended_totals (
  owner TEXT NOT NULL,
  state INTEGER NOT NULL,
  jobs INTEGER NOT NULL,
  jobs_with_files INTEGER NOT NULL,
  file_bytes INTEGER NOT NULL,
  entry_bytes INTEGER NOT NULL,
  PRIMARY KEY (owner, state)
) WITHOUT ROWID;
CREATE TRIGGER ended_keys_change AFTER UPDATE OF state, ended, file_bytes, entry_bytes ON job_keys
WHEN OLD.ended > 0 OR NEW.ended > 0 BEGIN
  UPDATE ended_totals SET jobs = jobs - 1, jobs_with_files = jobs_with_files - (OLD.file_bytes > 0),
      file_bytes = file_bytes - OLD.file_bytes, entry_bytes = entry_bytes - OLD.entry_bytes
    WHERE OLD.ended > 0 AND owner = OLD.owner AND state = OLD.state;
  INSERT INTO ended_totals SELECT NEW.owner, NEW.state, 1, NEW.file_bytes > 0, NEW.file_bytes,
      NEW.entry_bytes WHERE NEW.ended > 0
    ON CONFLICT DO UPDATE SET jobs = jobs + 1,
      jobs_with_files = jobs_with_files + excluded.jobs_with_files,
      file_bytes = file_bytes + excluded.file_bytes,
      entry_bytes = entry_bytes + excluded.entry_bytes;
END;
CREATE TRIGGER ended_keys_delete AFTER DELETE ON job_keys WHEN OLD.ended > 0 BEGIN
  UPDATE ended_totals SET jobs = jobs - 1, jobs_with_files = jobs_with_files - (OLD.file_bytes > 0),
      file_bytes = file_bytes - OLD.file_bytes, entry_bytes = entry_bytes - OLD.entry_bytes
    WHERE owner = OLD.owner AND state = OLD.state;
END;
)sql",
    R"sql(
CREATE TABLE removed_use (                   -- what jobs that were removed have used of the device
  owner TEXT NOT NULL,
  minute INTEGER NOT NULL,                   -- in which they ended, since the epoch
  seconds REAL NOT NULL,
  PRIMARY KEY (owner, minute)
) WITHOUT ROWID;
)sql",
    // Indexes for the lists that show the jobs of one owner. The index of webhook reports by due
    // time is dropped, because WebhookTurns now orders the reports.
    R"sql(
DROP INDEX webhooks_by_due;
DROP INDEX jobs_by_owner;
DROP INDEX jobs_by_owner_and_state;
CREATE INDEX job_keys_by_owner_and_end ON job_keys (owner, end_time, job);
CREATE INDEX job_keys_by_owner_and_priority ON job_keys (owner, priority, job);
CREATE TABLE gone_owners (                   -- of jobs of removed_jobs and damaged_jobs
  name TEXT PRIMARY KEY,
  owner TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE secret_key (key BLOB NOT NULL); -- one row, for what callers keep and must not read
INSERT INTO secret_key VALUES (randomblob(32));
)sql",
    R"sql(
CREATE TABLE latents (                       -- files of requests, until the job has ended
  number INTEGER PRIMARY KEY,
  job INTEGER NOT NULL REFERENCES jobs (number),
  field TEXT NOT NULL,                       -- of wan.v1.GenerationRequest
  latents BLOB NOT NULL,                     -- safetensors file
  UNIQUE (job, field)
);
)sql",
    R"sql(
ALTER TABLE job_files ADD COLUMN sha256 TEXT NOT NULL DEFAULT '';  -- '': not known yet
)sql"};
// The latest schema version that changed the table job_keys. A migration rebuilds the keys of an
// older database.
constexpr int kVersionOfJobKeys = 7;
constexpr int kSchemaVersion = static_cast<int>(std::size(kMigrations));

// This VFS of SQLite excludes other processes from the first read on, allows several connections of
// this process, and keeps the index of the write-ahead log in memory. The VFS creates no extra
// file, so a database on a full disk can still be read.
constexpr char kOneProcess[] = "unix-excl";

// The value of PRAGMA auto_vacuum with which VacuumPiece can shrink a file.
constexpr int kIncremental = 2;
// How many free pages stay in the file for the next jobs, and how many are freed at once, which
// takes a few milliseconds.
constexpr int kFreePagesKept = 256;
constexpr int kPagesAtOnce = 64;

bool RefusesWrites(const SQLite::Exception& error) {
  switch (error.getErrorCode()) {
    case SQLITE_FULL:
    case SQLITE_IOERR:
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_CANTOPEN:
      return true;
    default:
      return false;
  }
}

}  // namespace

absl::Status SqliteStatus(const SQLite::Exception& error, const std::string& where) {
  const std::string what = absl::StrCat(where, ": ", error.what());
  switch (error.getErrorCode()) {
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return absl::DataLossError(
          absl::StrCat(what,
                       "; the file is damaged: run 'wanserve repair --data-dir DIR', which keeps "
                       "what can be read, or restore a copy of the file"));
    case SQLITE_FULL:
      return WithReason(
          absl::ResourceExhaustedError(absl::StrCat(what, "; the disk is full: free some space")),
          kReasonStorageUnavailable);
    case SQLITE_IOERR:
      return WithReason(
          absl::UnavailableError(absl::StrCat(
              what, "; the disk refuses reads or writes: check the disk and its mount")),
          kReasonStorageUnavailable);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return absl::UnavailableError(absl::StrCat(
          what, "; another process uses the file: stop it, or choose another data_dir"));
    case SQLITE_CANTOPEN:
    case SQLITE_READONLY:
    case SQLITE_PERM:
      return WithReason(absl::PermissionDeniedError(absl::StrCat(
                            what, "; the server must be able to write the file and its folder")),
                        kReasonStorageUnavailable);
    default:
      return absl::InternalError(what);
  }
}

namespace {

// Returns the version of the file's schema, if the file is sound and no newer server wrote it.
absl::StatusOr<int> CheckedVersion(SQLite::Database& db, const std::string& where) {
  SQLite::Statement check(db, "PRAGMA quick_check(1)");
  if (!check.executeStep() || check.getColumn(0).getString() != "ok") {
    return SqliteStatus(SQLite::Exception("quick_check failed", SQLITE_CORRUPT), where);
  }
  const int version = db.execAndGet("PRAGMA user_version").getInt();
  if (version > kSchemaVersion) {
    return absl::FailedPreconditionError(absl::StrCat(
        where, ": the schema has version ", version, ", but this server knows versions up to ",
        kSchemaVersion, "; start the newer server that wrote it"));
  }
  return version;
}

}  // namespace

std::unique_ptr<SQLite::Database> OpenReadOnly(const std::filesystem::path& file) {
  std::error_code error;
  const auto log_bytes = std::filesystem::file_size(file.string() + "-wal", error);
  if (!error && log_bytes > 0) {
    // The VFS "unix-none" keeps the log's index in memory and takes no locks, so it needs no
    // permission to write.
    return std::make_unique<SQLite::Database>(file.string(), SQLite::OPEN_READONLY,
                                              /*aBusyTimeoutMs=*/0, "unix-none");
  }
  // Open as immutable, because otherwise SQLite would try to create a log.
  return std::make_unique<SQLite::Database>(ImmutableUri(file.string()),
                                            SQLite::OPEN_READONLY | SQLite::OPEN_URI);
}

std::unique_ptr<SQLite::Database> OpenToWrite(const std::string& file) {
  return std::make_unique<SQLite::Database>(file, SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE,
                                            /*aBusyTimeoutMs=*/0, kOneProcess);
}

std::unique_ptr<SQLite::Database> OpenBesideWriter(const std::string& file) {
  auto database = std::make_unique<SQLite::Database>(file, SQLite::OPEN_READWRITE,
                                                     /*aBusyTimeoutMs=*/0, kOneProcess);
  database->exec("PRAGMA query_only = ON");
  return database;
}

absl::Status PrepareDatabase(SQLite::Database& db, const std::string& where) {
  db.exec("PRAGMA auto_vacuum = INCREMENTAL");  // the setting affects only new files (VacuumPiece)
  const std::string mode = db.execAndGet("PRAGMA journal_mode = WAL").getString();
  // The store syncs the write-ahead log itself, once for several changes. With NORMAL, SQLite still
  // syncs the log's header, and both files at a checkpoint, which consistency requires.
  db.exec(mode == "wal" || mode == "memory" ? "PRAGMA synchronous = NORMAL"
                                            : "PRAGMA synchronous = FULL");
  const absl::StatusOr<int> version = CheckedVersion(db, where);
  if (!version.ok()) return version.status();
  try {
    // Write even if there is nothing to migrate, to find out at once whether the disk takes writes.
    SQLite::Transaction transaction(db);
    for (int step = *version; step < kSchemaVersion; ++step) {
      db.exec(kMigrations[step]);
    }
    if (*version < kVersionOfJobKeys) RebuildJobKeys(db);
    db.exec(absl::StrCat("PRAGMA user_version = ", kSchemaVersion));
    transaction.commit();
  } catch (const SQLite::Exception& error) {
    if (*version != kSchemaVersion || !RefusesWrites(error)) throw;
  }
  return absl::OkStatus();
}

absl::Status PrepareForReading(SQLite::Database& db, const std::string& where) {
  db.exec("PRAGMA locking_mode = EXCLUSIVE");
  const absl::StatusOr<int> version = CheckedVersion(db, where);
  if (!version.ok()) return version.status();
  if (*version < kSchemaVersion) {
    return WithReason(absl::UnavailableError(absl::StrCat(
                          where, ": the schema has version ", *version, " and must be migrated to ",
                          kSchemaVersion, "; the file must be writable for that")),
                      kReasonStorageUnavailable);
  }
  return absl::OkStatus();
}

bool VacuumPiece(SQLite::Database& db) {
  const auto free_pages = [&] { return db.execAndGet("PRAGMA freelist_count").getInt(); };
  if (db.execAndGet("PRAGMA auto_vacuum").getInt() != kIncremental) return false;
  if (free_pages() <= kFreePagesKept) return false;
  db.exec(absl::StrCat("PRAGMA incremental_vacuum(", kPagesAtOnce, ")"));
  return free_pages() > kFreePagesKept;
}

void WriteNothing(SQLite::Database& db) {
  SQLite::Transaction transaction(db);
  db.exec(absl::StrCat("PRAGMA user_version = ", kSchemaVersion));
  transaction.commit();
}

}  // namespace wan::server
