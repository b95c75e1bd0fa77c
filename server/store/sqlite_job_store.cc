#include "server/store/sqlite_job_store.h"

#include <SQLiteCpp/SQLiteCpp.h>
#include <sqlite3.h>

#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/mutex.h"
#include "server/conversion/errors.h"

namespace wan::server {
namespace {

// Step N of the list takes a database from version N to N + 1. A released step never changes.
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
  image BLOB NOT NULL                        -- PNG or JPEG file, until the job has ended
);
)sql"};
constexpr int kSchemaVersion = static_cast<int>(std::size(kMigrations));

constexpr char kSelectJob[] =
    "SELECT number, job, request_digest, tied_to_caller, "
    "(SELECT MAX(sequence) FROM events WHERE events.job = jobs.number) FROM jobs ";

absl::Status ToStatus(const SQLite::Exception& error, const std::string& where) {
  const std::string what = absl::StrCat(where, ": ", error.what());
  switch (error.getErrorCode()) {
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return absl::DataLossError(
          absl::StrCat(what,
                       "; the file is damaged: restore a copy of it, or move it away to "
                       "start with no jobs (videos stay where they are)"));
    case SQLITE_FULL:
      return absl::ResourceExhaustedError(what);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return absl::UnavailableError(absl::StrCat(what, "; another process uses the file"));
    case SQLITE_CANTOPEN:
    case SQLITE_READONLY:
    case SQLITE_PERM:
      return absl::PermissionDeniedError(
          absl::StrCat(what, "; the server must be able to write the file and its folder"));
    default:
      return absl::InternalError(what);
  }
}

template <typename Message>
absl::StatusOr<Message> Parse(const SQLite::Column& column, const std::string& where) {
  Message message;
  if (!message.ParseFromArray(column.getBlob(), column.getBytes())) {
    return absl::DataLossError(
        absl::StrCat(where, ": a row holds no ", Message::descriptor()->full_name()));
  }
  return message;
}

void BindBlob(SQLite::Statement& statement, int index, const std::string& bytes) {
  statement.bind(index, static_cast<const void*>(bytes.data()), static_cast<int>(bytes.size()));
}

// What of a job is kept.
std::string RowOf(wan::v1::Job job) {
  job.clear_queue_position();
  job.clear_progress();
  job.clear_last_sequence();
  return job.SerializeAsString();
}

class SqliteJobStore final : public JobStore {
 public:
  SqliteJobStore(std::unique_ptr<SQLite::Database> database, const std::string& where)
      : where_(where), database_(std::move(database)) {}

  absl::Status Prepare() {
    return Guard([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) -> absl::Status {
      SQLite::Database& db = *database_;
      db.exec("PRAGMA locking_mode = EXCLUSIVE");
      db.exec("PRAGMA journal_mode = WAL");
      db.exec("PRAGMA synchronous = FULL");
      SQLite::Statement check(db, "PRAGMA quick_check(1)");
      if (!check.executeStep() || check.getColumn(0).getString() != "ok") {
        return ToStatus(SQLite::Exception("quick_check failed", SQLITE_CORRUPT), where_);
      }
      const int version = db.execAndGet("PRAGMA user_version").getInt();
      if (version > kSchemaVersion) {
        return absl::FailedPreconditionError(
            absl::StrCat(where_, ": schema version ", version, ", but this server knows up to ",
                         kSchemaVersion, "; start the newer server that wrote it"));
      }
      // Also with nothing to migrate: the write takes the exclusive lock now.
      SQLite::Transaction transaction(db);
      for (int step = version; step < kSchemaVersion; ++step) db.exec(kMigrations[step]);
      db.exec(absl::StrCat("PRAGMA user_version = ", kSchemaVersion));
      transaction.commit();
      return absl::OkStatus();
    });
  }

  absl::Status Insert(const StoredJob& stored, const std::string& image,
                      std::span<const wan::v1::Event> events) override {
    return Guard([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) -> absl::Status {
      SQLite::Database& db = *database_;
      SQLite::Transaction transaction(db);
      const wan::v1::Job& job = stored.job;
      SQLite::Statement taken(db, "SELECT name FROM jobs WHERE name = ?1 OR request_id = ?2");
      taken.bind(1, job.name());
      if (!job.request().request_id().empty()) taken.bind(2, job.request().request_id());
      if (taken.executeStep()) {
        return absl::AlreadyExistsError(
            absl::StrCat("name or request_id belongs to ", taken.getColumn(0).getString()));
      }
      SQLite::Statement insert(db,
                               "INSERT INTO jobs (name, state, request_id, request_digest, "
                               "tied_to_caller, job) VALUES (?, ?, ?, ?, ?, ?)");
      insert.bind(1, job.name());
      insert.bind(2, static_cast<int>(job.state()));
      if (!job.request().request_id().empty()) insert.bind(3, job.request().request_id());
      insert.bind(4, stored.request_digest);
      insert.bind(5, stored.tied_to_caller ? 1 : 0);
      BindBlob(insert, 6, RowOf(job));
      insert.exec();
      const int64_t number = db.getLastInsertRowid();
      InsertEvents(number, events);
      if (!image.empty()) {
        SQLite::Statement statement(db, "INSERT INTO images (job, image) VALUES (?, ?)");
        statement.bind(1, number);
        BindBlob(statement, 2, image);
        statement.exec();
      }
      transaction.commit();
      return absl::OkStatus();
    });
  }

  absl::Status Apply(std::span<const JobChange> changes) override {
    return Guard([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) -> absl::Status {
      SQLite::Transaction transaction(*database_);
      for (const JobChange& change : changes) {
        absl::Status status = ApplyOne(change);
        if (!status.ok()) return status;  // the transaction rolls back
      }
      transaction.commit();
      return absl::OkStatus();
    });
  }

  absl::StatusOr<StoredJob> Get(std::string_view job) override {
    return FindJob("WHERE name = ?", job, JobNotFoundError(job));
  }

  absl::StatusOr<StoredJob> FindByRequestId(std::string_view request_id) override {
    return FindJob("WHERE request_id = ?", request_id,
                   absl::NotFoundError("no job has this request_id"));
  }

  absl::StatusOr<JobPage> List(const JobQuery& query) override {
    return Guard([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) -> absl::StatusOr<JobPage> {
      std::vector<int> states(query.states.begin(), query.states.end());
      SQLite::Statement select(
          *database_, absl::StrCat(kSelectJob, "WHERE (?1 = 0 OR number < ?1)",
                                   states.empty() ? ""
                                                  : absl::StrCat(" AND state IN (",
                                                                 absl::StrJoin(states, ","), ")"),
                                   " ORDER BY number DESC LIMIT ?2"));
      select.bind(1, query.before);
      select.bind(2, query.limit + 1);  // one more tells whether another page follows
      JobPage page;
      int64_t last = 0;
      while (select.executeStep()) {
        if (static_cast<int>(page.jobs.size()) == query.limit) {
          page.next = last;
          break;
        }
        absl::StatusOr<StoredJob> job = ReadJob(select);
        if (!job.ok()) return job.status();
        page.jobs.push_back(*std::move(job));
        last = select.getColumn(0).getInt64();
      }
      return page;
    });
  }

  absl::StatusOr<std::vector<StoredJob>> Unfinished() override {
    return Guard(
        [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) -> absl::StatusOr<std::vector<StoredJob>> {
          SQLite::Statement select(
              *database_, absl::StrCat(kSelectJob, "WHERE state IN (?, ?) ORDER BY number"));
          select.bind(1, static_cast<int>(wan::v1::JOB_STATE_QUEUED));
          select.bind(2, static_cast<int>(wan::v1::JOB_STATE_RUNNING));
          std::vector<StoredJob> jobs;
          while (select.executeStep()) {
            absl::StatusOr<StoredJob> job = ReadJob(select);
            if (!job.ok()) return job.status();
            jobs.push_back(*std::move(job));
          }
          return jobs;
        });
  }

  absl::StatusOr<std::vector<wan::v1::Event>> Events(std::string_view job, int64_t after,
                                                     int limit) override {
    return Guard([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(
                     mutex_) -> absl::StatusOr<std::vector<wan::v1::Event>> {
      SQLite::Statement select(
          *database_,
          "SELECT event FROM events WHERE job = (SELECT number FROM jobs WHERE name = ?) "
          "AND sequence > ? ORDER BY sequence LIMIT ?");
      select.bind(1, std::string(job));
      select.bind(2, after);
      select.bind(3, limit);
      std::vector<wan::v1::Event> events;
      while (select.executeStep()) {
        absl::StatusOr<wan::v1::Event> event = Parse<wan::v1::Event>(select.getColumn(0), where_);
        if (!event.ok()) return event.status();
        events.push_back(*std::move(event));
      }
      return events;
    });
  }

  absl::StatusOr<wan::v1::JobReport> Report(std::string_view job) override {
    return Guard([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) -> absl::StatusOr<wan::v1::JobReport> {
      SQLite::Statement select(
          *database_,
          "SELECT report FROM reports WHERE job = (SELECT number FROM jobs WHERE name = ?)");
      select.bind(1, std::string(job));
      if (!select.executeStep()) return absl::NotFoundError("the job has no report");
      return Parse<wan::v1::JobReport>(select.getColumn(0), where_);
    });
  }

  absl::StatusOr<std::string> Image(std::string_view job) override {
    return Guard([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) -> absl::StatusOr<std::string> {
      SQLite::Statement select(
          *database_,
          "SELECT image FROM images WHERE job = (SELECT number FROM jobs WHERE name = ?)");
      select.bind(1, std::string(job));
      if (!select.executeStep()) return std::string();
      return select.getColumn(0).getString();
    });
  }

 private:
  // The one place that catches what SQLite throws; one call at a time.
  template <typename Body>
  auto Guard(const Body& body) -> decltype(body()) {
    absl::MutexLock lock(&mutex_);
    try {
      return body();
    } catch (const SQLite::Exception& error) {
      return ToStatus(error, where_);
    }
  }

  absl::StatusOr<StoredJob> FindJob(const char* condition, std::string_view key,
                                    const absl::Status& missing) {
    return Guard([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) -> absl::StatusOr<StoredJob> {
      SQLite::Statement select(*database_, absl::StrCat(kSelectJob, condition));
      select.bind(1, std::string(key));
      if (!select.executeStep()) return missing;
      return ReadJob(select);
    });
  }

  // A row of kSelectJob.
  absl::StatusOr<StoredJob> ReadJob(SQLite::Statement& select) const {
    absl::StatusOr<wan::v1::Job> job = Parse<wan::v1::Job>(select.getColumn(1), where_);
    if (!job.ok()) return job.status();
    StoredJob stored;
    stored.job = *std::move(job);
    stored.request_digest = select.getColumn(2).getString();
    stored.tied_to_caller = select.getColumn(3).getInt() != 0;
    stored.job.set_last_sequence(select.getColumn(4).getInt64());  // NULL reads as 0
    return stored;
  }

  void InsertEvents(int64_t number, std::span<const wan::v1::Event> events)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (events.empty()) return;
    SQLite::Statement insert(*database_,
                             "INSERT INTO events (job, sequence, event) VALUES (?, ?, ?)");
    for (const wan::v1::Event& event : events) {
      insert.bind(1, number);
      insert.bind(2, event.sequence());
      BindBlob(insert, 3, event.SerializeAsString());
      insert.exec();
      insert.reset();
    }
  }

  absl::Status ApplyOne(const JobChange& change) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    SQLite::Database& db = *database_;
    SQLite::Statement find(db, "SELECT number FROM jobs WHERE name = ?");
    find.bind(1, change.job);
    if (!find.executeStep()) return JobNotFoundError(change.job);
    const int64_t number = find.getColumn(0).getInt64();
    if (change.row.has_value()) {
      SQLite::Statement update(db, "UPDATE jobs SET state = ?, job = ? WHERE number = ?");
      update.bind(1, static_cast<int>(change.row->state()));
      BindBlob(update, 2, RowOf(*change.row));
      update.bind(3, number);
      update.exec();
      if (IsFinal(change.row->state())) {
        SQLite::Statement drop(db, "DELETE FROM images WHERE job = ?");
        drop.bind(1, number);
        drop.exec();
      }
    }
    InsertEvents(number, change.events);
    if (change.report.has_value()) {
      SQLite::Statement replace(db, "INSERT OR REPLACE INTO reports (job, report) VALUES (?, ?)");
      replace.bind(1, number);
      BindBlob(replace, 2, change.report->SerializeAsString());
      replace.exec();
    }
    return absl::OkStatus();
  }

  const std::string where_;  // the file, for messages
  absl::Mutex mutex_;
  const std::unique_ptr<SQLite::Database> database_ ABSL_PT_GUARDED_BY(mutex_);
};

absl::StatusOr<std::unique_ptr<JobStore>> OpenStore(const std::string& file,
                                                    const std::string& where) {
  std::unique_ptr<SqliteJobStore> store;
  try {
    store = std::make_unique<SqliteJobStore>(
        std::make_unique<SQLite::Database>(file, SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE),
        where);
  } catch (const SQLite::Exception& error) {
    return ToStatus(error, where);
  }
  absl::Status prepared = store->Prepare();
  if (!prepared.ok()) return prepared;
  return store;
}

}  // namespace

absl::StatusOr<std::unique_ptr<JobStore>> OpenSqliteJobStore(const std::filesystem::path& file) {
  return OpenStore(file.string(), absl::StrCat("job database ", file.string()));
}

absl::StatusOr<std::unique_ptr<JobStore>> OpenInMemoryJobStore() {
  return OpenStore(":memory:", "job database in memory");
}

}  // namespace wan::server
