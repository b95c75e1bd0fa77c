#include "server/store/sqlite_job_store.h"

#include <SQLiteCpp/SQLiteCpp.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <system_error>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "engine/api/errors.h"
#include "server/conversion/errors.h"
#include "server/store/await.h"
#include "server/store/database_files.h"
#include "server/store/ended_keys.h"
#include "server/store/event_rows.h"
#include "server/store/input_rows.h"
#include "server/store/job_database.h"
#include "server/store/job_files.h"
#include "server/store/job_keys.h"
#include "server/store/job_pages.h"
#include "server/store/job_rows.h"
#include "server/store/readable_rows.h"
#include "server/store/repair.h"
#include "server/store/sqlite_schema.h"
#include "server/store/sqlite_webhook_outbox.h"
#include "server/store/stored_rows.h"
#include "server/store/webhook_rows.h"

namespace wan::server {
namespace {

constexpr int64_t kNewest = std::numeric_limits<int64_t>::max();

// The sync of a store that is only in memory.
absl::Status SyncNothing() { return absl::OkStatus(); }

class SqliteJobStore final : public JobStore {
 public:
  SqliteJobStore(const std::string& where, std::function<void(const absl::Status&)> on_problem)
      : where_(where), on_problem_(std::move(on_problem)) {}

  absl::Status Open(JobDatabase::Source source) {
    absl::StatusOr<std::unique_ptr<JobDatabase>> opened = JobDatabase::Open(std::move(source));
    if (!opened.ok()) return opened.status();
    database_ = *std::move(opened);
    webhooks_.emplace(*database_);
    return absl::OkStatus();
  }

  absl::Status CheckWritable() override {
    return AwaitDone<absl::Status>([&](Done done) { database_->CheckWritable(std::move(done)); });
  }

  using JobStore::Apply;

  void InsertAll(std::span<const JobAddition> additions, Done done) override {
    for (const JobAddition& addition : additions) {
      absl::Status readable = CheckReadable(addition.job, addition.events);
      if (!readable.ok()) return done(readable);
    }
    database_->Change(
        [this, additions](Statements& db) -> absl::Status {
          for (const JobAddition& addition : additions) {
            const absl::StatusOr<int64_t> number = InsertJobRows(db, addition.job, addition.inputs);
            if (!number.ok()) return number.status();
            InsertEvents(db, addition.job.job.name(), *number, addition.events);
          }
          return absl::OkStatus();
        },
        std::move(done),
        [this, additions](const absl::Status& /*synced*/) {
          database_
              ->TakeBack([additions](SQLite::Database& db) -> absl::Status {
                SQLite::Transaction transaction(db);
                for (const JobAddition& addition : additions) {
                  TakeBackJob(db, addition.job.job.name());
                }
                transaction.commit();
                return absl::OkStatus();
              })
              .IgnoreError();  // ignore errors: the refused jobs then run after the next start
        });
  }

  void Remove(std::string_view job, Done done) override {
    database_->Change(
        [job = std::string(job)](SQLite::Database& db) { return RemoveEndedJob(db, job); },
        std::move(done));
  }

  void Apply(std::span<const JobChange> asked, Done done) override {
    auto mended =
        std::make_shared<const std::vector<JobChange>>(MendedChanges(where_, asked, on_problem_));
    const std::span<const JobChange> changes = mended->empty() ? asked : std::span(*mended);
    database_->Change(
        [this, changes](Statements& db) -> absl::Status {
          for (const JobChange& change : changes) {
            absl::Status status = ApplyOne(db, change);
            if (!status.ok()) return status;
          }
          return absl::OkStatus();
        },
        [this, changes, mended, done = std::move(done)](const absl::Status& status) {
          if (status.ok()) {
            absl::MutexLock lock(&mutex_);
            for (const JobChange& change : changes) {
              if (!change.events.empty()) unsynced_events_.erase(change.job);
            }
          }
          done(status);
        },
        [this, changes, mended](const absl::Status& /*synced*/) {
          absl::MutexLock lock(&mutex_);
          for (const JobChange& change : changes) {
            for (const wan::v1::Event& event : change.events) {
              const auto [known, added] = unsynced_events_.emplace(change.job, event.sequence());
              if (!added) known->second = std::min(known->second, event.sequence());
            }
          }
        });
  }

  absl::StatusOr<StoredJob> Get(std::string_view job) override {
    return FindJob("name", job, std::nullopt);
  }

  absl::StatusOr<StoredJob> FindByRequestId(std::string_view owner,
                                            std::string_view request_id) override {
    return FindJob("request_id", RequestKey(owner, request_id),
                   absl::NotFoundError("no job has this request_id"));
  }

  absl::StatusOr<JobPage> List(const JobQuery& query) override {
    return ReadPage(
        query,
        [&](const std::optional<JobPlace>& after, int limit, size_t bytes, JobScan& scan) {
          return ReadFound(query, after, limit, bytes, scan);
        },
        [this](const JobRow& row) { return ToJob(row); });
  }

  absl::StatusOr<std::string> OwnerOf(std::string_view job) override {
    return database_->Read(
        [&](SQLite::Database& db) -> absl::StatusOr<std::string> { return ReadOwner(db, job); });
  }

  absl::StatusOr<std::string> SecretKey() override {
    return database_->Read([](SQLite::Database& db) -> absl::StatusOr<std::string> {
      return db.execAndGet("SELECT key FROM secret_key").getString();
    });
  }

  absl::StatusOr<std::vector<StoredJob>> Unfinished() override {
    std::vector<StoredJob> jobs;
    for (int64_t before = kNewest;;) {
      const absl::StatusOr<std::vector<JobRow>> rows =
          database_->Scan([&](SQLite::Database& db) -> absl::StatusOr<std::vector<JobRow>> {
            return ReadUnfinishedRows(db, before, kRowsAtOnce);
          });
      if (!rows.ok()) return rows.status();
      for (const JobRow& row : *rows) {
        before = row.number;
        absl::StatusOr<StoredJob> job = ToJob(row);
        if (job.ok()) jobs.push_back(*std::move(job));
      }
      if (static_cast<int>(rows->size()) < kRowsAtOnce) break;
    }
    std::reverse(jobs.begin(), jobs.end());
    return jobs;
  }

  absl::StatusOr<std::map<wan::v1::JobState, EndedTotals>> TotalsOfEnded(
      const std::optional<std::string>& owner) override {
    using Totals = std::map<wan::v1::JobState, EndedTotals>;
    return database_->Scan(
        [&](SQLite::Database& db) -> absl::StatusOr<Totals> { return ReadEndedTotals(db, owner); });
  }

  absl::StatusOr<std::vector<EndedJob>> OldestEnded(const EndedQuery& query) override {
    using Jobs = std::vector<EndedJob>;
    return database_->Scan(
        [&](SQLite::Database& db) -> absl::StatusOr<Jobs> { return ReadOldestEnded(db, query); });
  }

  absl::StatusOr<std::vector<PrincipalUse>> UseOfRemoved(absl::Time since) override {
    using Result = absl::StatusOr<std::vector<PrincipalUse>>;
    return database_->Scan(
        [&](SQLite::Database& db) -> Result { return ReadRemovedUse(db, since); });
  }

  absl::StatusOr<bool> Vacuum() override {
    bool more = false;
    const absl::Status status = AwaitDone<absl::Status>([&](Done done) {
      const auto vacuum = [&more](SQLite::Database& db) -> absl::Status {
        more = VacuumPiece(db);
        return absl::OkStatus();
      };
      database_->Write(vacuum, std::move(done));
    });
    if (!status.ok()) return status;
    return more;
  }

  absl::StatusOr<std::vector<wan::v1::Event>> Events(std::string_view job, int64_t after,
                                                     int limit) override {
    const absl::StatusOr<std::vector<EventRow>> rows =
        database_->Read([&](SQLite::Database& db) -> absl::StatusOr<std::vector<EventRow>> {
          return ReadEventRows(db, job, after, limit);
        });
    if (!rows.ok()) return rows.status();
    absl::StatusOr<std::vector<wan::v1::Event>> events = ParseEvents(*rows, after);
    if (!events.ok()) return DamagedError(job, std::string(events.status().message()));
    return events;
  }

  absl::StatusOr<wan::v1::JobReport> Report(std::string_view job) override {
    const absl::StatusOr<std::string> bytes =
        database_->Read([&](SQLite::Database& db) -> absl::StatusOr<std::string> {
          SQLite::Statement select(
              db,
              "SELECT report FROM reports WHERE job = (SELECT number FROM jobs WHERE name = ?)");
          select.bind(1, std::string(job));
          if (!select.executeStep()) return absl::NotFoundError("the job has no report");
          return select.getColumn(0).getString();
        });
    if (!bytes.ok()) return bytes.status();
    wan::v1::JobReport report;
    if (!report.ParseFromString(*bytes)) return DamagedError(job, "its report cannot be read");
    return report;
  }

  absl::StatusOr<std::vector<JobFile>> Files(std::string_view job) override {
    using Result = absl::StatusOr<std::vector<JobFile>>;
    return database_->Read([&](SQLite::Database& db) -> Result { return ReadJobFiles(db, job); });
  }

  WebhookOutbox& webhooks() override { return *webhooks_; }

  absl::StatusOr<JobInputs> Inputs(std::string_view job) override {
    return database_->Read(
        [&](SQLite::Database& db) -> absl::StatusOr<JobInputs> { return ReadInputs(db, job); });
  }

 private:
  // Returns the job whose column `key` has the value `value`. Fails with DATA_LOSS if the job's row
  // is damaged.
  absl::StatusOr<StoredJob> FindJob(const char* key, std::string_view value,
                                    const std::optional<absl::Status>& missing) {
    const absl::StatusOr<JobRow> row =
        database_->Read([&](SQLite::Database& db) -> absl::StatusOr<JobRow> {
          SQLite::Statement select(db, absl::StrCat(kSelectJob, "WHERE ", key, " = ?"));
          select.bind(1, std::string(value));
          if (select.executeStep()) return ReadRow(select);
          SQLite::Statement damaged(
              db, absl::StrCat("SELECT name, reason FROM damaged_jobs WHERE ", key, " = ?"));
          damaged.bind(1, std::string(value));
          if (!damaged.executeStep())
            return missing.has_value() ? *missing : MissingError(db, value);
          return DamagedError(damaged.getColumn(0).getString(), damaged.getColumn(1).getString());
        });
    if (!row.ok()) return row.status();
    return ToJob(*row);
  }

  // Reports texts that the callers should have refused.
  absl::Status CheckReadable(const StoredJob& stored,
                             std::span<const wan::v1::Event> events) const {
    absl::Status readable = CheckReadsBack(where_, stored, events);
    if (!readable.ok() && on_problem_ != nullptr) on_problem_(readable);
    return readable;
  }

  // Returns a query's next jobs, in the query's order: at most `limit`, and none after the job that
  // exceeds `bytes`. Stores in `scan` how far the search has come.
  absl::StatusOr<std::vector<JobRow>> ReadFound(const JobQuery& query,
                                                const std::optional<JobPlace>& after, int limit,
                                                size_t bytes, JobScan& scan) {
    using Rows = std::vector<JobRow>;
    return database_->Scan([&](SQLite::Database& db) -> absl::StatusOr<Rows> {
      scan = ScanJobKeys(db, query, after, limit);
      Rows rows;
      size_t read = 0;
      SQLite::Statement select(db, absl::StrCat(kSelectJob, "WHERE number = ?"));
      for (const JobPlace& place : scan.found) {
        select.reset();
        select.bind(1, place.number);
        if (!select.executeStep()) continue;
        rows.push_back(ReadRow(select));
        read += rows.back().job.size();
        if (read < bytes) continue;
        if (place != scan.found.back()) scan.end = place;
        break;
      }
      return rows;
    });
  }

  // Parses a row; call ToJob with no lock held. If the row is damaged, calls SetAside and returns
  // DATA_LOSS.
  absl::StatusOr<StoredJob> ToJob(const JobRow& row) {
    StoredJob stored;
    const std::string damage = ReadRow(row, stored);
    if (!damage.empty()) return SetAside(row, damage);
    return stored;
  }

  // Queues the move of a damaged row to damaged_jobs, and reports the row once.
  absl::Status SetAside(const JobRow& row, const std::string& damage) {
    absl::Status damaged = DamagedError(row.name, damage);
    bool first = false;
    {
      absl::MutexLock lock(&mutex_);
      first = told_.insert(row.number).second;
    }
    const auto move = [number = row.number, damage](SQLite::Database& db) -> absl::Status {
      SQLite::Transaction transaction(db);
      MoveToDamaged(db, number, damage);
      transaction.commit();
      return absl::OkStatus();
    };
    // If the disk takes no writes, the damaged row stays in the table, where reads skip it.
    database_->Write(move, [](const absl::Status& /*ignored*/) {});
    if (first && on_problem_ != nullptr) on_problem_(damaged);
    return damaged;
  }

  absl::Status DamagedError(std::string_view job, std::string_view damage) const {
    return WithReason(
        absl::DataLossError(absl::StrCat(
            std::string(job), " is damaged: ", std::string(damage), " (", where_,
            "); a damaged row is kept in the table damaged_jobs, and all other jobs are served")),
        kReasonJobDamaged);
  }

  void InsertEvents(Statements& db, const std::string& job, int64_t number,
                    std::span<const wan::v1::Event> events) {
    if (events.empty()) return;
    std::optional<int64_t> unsynced;
    {
      absl::MutexLock lock(&mutex_);
      const auto found = unsynced_events_.find(job);
      // An earlier change of the same transaction may have added events after that one.
      if (found != unsynced_events_.end()) {
        unsynced = std::max(found->second, events.front().sequence());
      }
    }
    InsertEventRows(db, number, events, unsynced);
  }

  absl::Status ApplyOne(Statements& db, const JobChange& change) {
    SQLite::Statement find(db, "SELECT number FROM jobs WHERE name = ?");
    find.bind(1, change.job);
    if (!find.executeStep()) return JobNotFoundError(change.job);
    const int64_t number = find.getColumn(0).getInt64();
    if (change.row.has_value()) UpdateJobRow(db, number, *change.row);
    InsertEvents(db, change.job, number, change.events);
    AddWebhookOf(db, change);
    if (change.report.has_value()) ReplaceReport(db, number, *change.report);
    if (change.files.has_value()) ReplaceJobFiles(db, number, *change.files);
    // Do this last, because the keys include the size of all rows of the job.
    if (change.row.has_value()) UpdateJobKeys(db, number, *change.row, change.labels_changed);
    return absl::OkStatus();
  }

  const std::string where_;  // names the file in messages
  const std::function<void(const absl::Status&)> on_problem_;
  absl::Mutex mutex_;
  // For each job, the sequence of the first event that was written without a confirmation by the
  // disk. The store has refused the change with this event; the caller will repeat the change,
  // possibly with other events.
  std::map<std::string, int64_t> unsynced_events_ ABSL_GUARDED_BY(mutex_);
  // The numbers of the damaged rows that were already reported.
  std::set<int64_t> told_ ABSL_GUARDED_BY(mutex_);
  std::optional<SqliteWebhookOutbox> webhooks_;
  std::unique_ptr<JobDatabase> database_;  // declared last: its pending calls use the members above
};

absl::StatusOr<std::unique_ptr<JobStore>> OpenStore(
    JobDatabase::Source source, std::function<void(const absl::Status&)> on_problem) {
  auto store = std::make_unique<SqliteJobStore>(source.where, std::move(on_problem));
  if (absl::Status opened = store->Open(std::move(source)); !opened.ok()) return opened;
  return store;
}

std::string WhereOf(const std::filesystem::path& file) {
  return absl::StrCat("job database ", file.string());
}

// Fails with FAILED_PRECONDITION for a pipe or another special file, on which SQLite would wait
// forever.
absl::Status CheckIsFile(const std::filesystem::path& file) {
  for (const char* const suffix : {"", "-wal"}) {
    const std::filesystem::path part = file.string() + suffix;
    std::error_code error;
    const auto status = std::filesystem::status(part, error);
    if (!std::filesystem::is_other(status)) continue;
    return absl::FailedPreconditionError(absl::StrCat(
        "job database ", part.string(), " is a pipe, socket or device; must be a file"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<JobStore>> OpenSqliteJobStore(
    const std::filesystem::path& file, std::function<void(const absl::Status&)> on_problem,
    std::function<absl::Status()> sync) {
  if (absl::Status status = CheckIsFile(file); !status.ok()) return status;
  if (RepairIsPending(file)) {
    return absl::DataLossError(absl::StrCat(
        WhereOf(file), ": a repair was interrupted; run 'wanserve repair --data-dir DIR' again"));
  }
  if (sync == nullptr) {
    sync = [log = std::make_shared<LogFile>(file.string(), WhereOf(file))] { return log->Sync(); };
  }
  return OpenStore({.file = file.string(),
                    .where = WhereOf(file),
                    .open = [&] { return OpenToWrite(file.string()); },
                    .prepare = &PrepareDatabase,
                    .open_to_read = [&] { return OpenBesideWriter(file.string()); },
                    .sync = std::move(sync)},
                   std::move(on_problem));
}

absl::StatusOr<std::unique_ptr<JobStore>> OpenSqliteJobStoreForReading(
    const std::filesystem::path& file, std::function<void(const absl::Status&)> on_problem) {
  if (absl::Status status = CheckIsFile(file); !status.ok()) return status;
  return OpenStore({.file = file.string(),
                    .where = WhereOf(file),
                    .open = [&] { return OpenReadOnly(file); },
                    .prepare = &PrepareForReading,
                    .sync = &SyncNothing},
                   std::move(on_problem));
}

absl::StatusOr<std::unique_ptr<JobStore>> OpenInMemoryJobStore() {
  const std::string name = ":memory:";
  return OpenStore({.file = name,
                    .where = "job database in memory",
                    .open =
                        [&] {
                          return std::make_unique<SQLite::Database>(
                              name, SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE);
                        },
                    .prepare = &PrepareDatabase,
                    .sync = &SyncNothing},
                   nullptr);
}

}  // namespace wan::server
