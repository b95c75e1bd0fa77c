#include "server/store/sqlite_job_store.h"

#include <SQLiteCpp/SQLiteCpp.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "engine/api/errors.h"
#include "server/conversion/errors.h"
#include "server/store/database_files.h"
#include "server/store/ended_keys.h"
#include "server/store/group_sync.h"
#include "server/store/job_files.h"
#include "server/store/job_keys.h"
#include "server/store/job_rows.h"
#include "server/store/repair.h"
#include "server/store/sqlite_schema.h"
#include "server/store/webhook_rows.h"

namespace wan::server {
namespace {

// Most rows that are read without releasing the lock.
constexpr int kRowsAtOnce = 64;
// A page of jobs ends early at this size, because gRPC clients accept 4 MiB by default.
constexpr size_t kMaxPageBytes = size_t{3} << 20;
// For stores that have nothing to sync.
absl::Status SyncNothing() { return absl::OkStatus(); }

constexpr int64_t kNewest = std::numeric_limits<int64_t>::max();

class SqliteJobStore final : public JobStore {
 public:
  SqliteJobStore(std::unique_ptr<SQLite::Database> database, const std::string& file,
                 const std::string& where, std::function<void(const absl::Status&)> on_problem,
                 std::function<absl::Status()> sync)
      : where_(where),
        on_problem_(std::move(on_problem)),
        place_(file),
        sync_(std::move(sync)),
        database_(std::move(database)) {}

  absl::Status Prepare(absl::Status (*prepare)(SQLite::Database&, const std::string&)) {
    return Guard([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) -> absl::Status {
      return prepare(*database_, where_);
    });
  }

  absl::Status CheckWritable() override {
    absl::Status written = Guard([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) -> absl::Status {
      if (absl::Status placed = place_.Check(where_); !placed.ok()) return placed;
      WriteNothing(*database_);
      if (!unsynced_.ok()) {
        // What the log has may be lost. All of it goes into the database's file, and is synced.
        SQLite::Statement checkpoint(*database_, "PRAGMA wal_checkpoint(TRUNCATE)");
        if (checkpoint.executeStep() && checkpoint.getColumn(0).getInt() != 0) return unsynced_;
        unsynced_ = absl::OkStatus();
      }
      return absl::OkStatus();
    });
    return written.ok() ? sync_.Await() : written;
  }

  absl::Status Insert(const StoredJob& stored, const std::string& image,
                      std::span<const wan::v1::Event> events) override {
    const absl::Status written = Change(
        [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return InsertOne(stored, image, events); });
    const std::string& name = stored.job.name();
    return written.ok() ? SyncOrRemove(std::span(&name, 1)) : written;
  }

  absl::Status InsertAll(std::span<const JobAddition> additions) override {
    const std::string none;
    std::vector<std::string> names;
    const absl::Status written =
        Change([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) -> absl::Status {
          for (const JobAddition& addition : additions) {
            absl::Status status = InsertOne(
                addition.job, addition.image != nullptr ? *addition.image : none, addition.events);
            if (!status.ok()) return status;
            names.push_back(addition.job.job.name());
          }
          return absl::OkStatus();
        });
    return written.ok() ? SyncOrRemove(names) : written;
  }

  absl::Status Remove(std::string_view job) override {
    absl::Status written = Change(
        [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return RemoveEndedJob(*database_, job); });
    if (!written.ok()) return written;
    absl::Status synced = sync_.Await();
    if (!synced.ok()) {
      absl::MutexLock lock(&mutex_);
      unsynced_.Update(synced);
    }
    return synced;
  }

  absl::Status Apply(std::span<const JobChange> changes) override {
    absl::Status written = Change([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) -> absl::Status {
      for (const JobChange& change : changes) {
        absl::Status status = ApplyOne(change);
        if (!status.ok()) return status;
      }
      return absl::OkStatus();
    });
    if (!written.ok()) return written;
    absl::Status synced = sync_.Await();
    if (!synced.ok()) {
      absl::MutexLock lock(&mutex_);
      unsynced_.Update(synced);
      for (const JobChange& change : changes) {
        for (const wan::v1::Event& event : change.events) {
          unsynced_events_.emplace(change.job, event.sequence());
        }
      }
    }
    return synced;
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
    JobPage page;
    size_t bytes = 0;
    std::optional<JobPlace> last;  // the page's last job
    for (std::optional<JobPlace> after = query.after;;) {
      // Read one more than fits, to know whether another page follows.
      const int wanted =
          std::min(kRowsAtOnce, query.limit + 1 - static_cast<int>(page.jobs.size()));
      JobScan scan;
      const absl::StatusOr<std::vector<JobRow>> rows = ReadFound(query, after, wanted, scan);
      if (!rows.ok()) return rows.status();
      for (size_t i = 0; i < rows->size(); ++i) {
        const JobRow& row = (*rows)[i];
        if (static_cast<int>(page.jobs.size()) == query.limit || bytes >= kMaxPageBytes) {
          page.next = last;
          return page;
        }
        absl::StatusOr<StoredJob> job = ToJob(row);
        if (!job.ok()) continue;  // ToJob has set it aside and reported it
        last = scan.found[i];
        bytes += row.job.size();
        page.jobs.push_back(*std::move(job));
      }
      if (!scan.end.has_value()) return page;
      after = scan.end;
    }
  }

  absl::StatusOr<std::vector<StoredJob>> Unfinished() override {
    std::vector<StoredJob> jobs;
    for (int64_t before = kNewest;;) {
      const absl::StatusOr<std::vector<JobRow>> rows = ReadUnfinished(before);
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
    return Guard([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) -> absl::StatusOr<Totals> {
      return ReadEndedTotals(*database_, owner);
    });
  }

  absl::StatusOr<std::vector<EndedJob>> OldestEnded(const EndedQuery& query) override {
    using Jobs = std::vector<EndedJob>;
    return Guard([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) -> absl::StatusOr<Jobs> {
      return ReadOldestEnded(*database_, query);
    });
  }

  absl::StatusOr<std::vector<PrincipalUse>> UseOfRemoved(absl::Time since) override {
    using Result = absl::StatusOr<std::vector<PrincipalUse>>;
    return Guard([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) -> Result {
      return ReadRemovedUse(*database_, since);
    });
  }

  absl::StatusOr<bool> Vacuum() override {
    return Guard([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) -> absl::StatusOr<bool> {
      if (absl::Status ready = CheckReady(); !ready.ok()) return ready;
      return VacuumPiece(*database_);
    });
  }

  absl::StatusOr<std::vector<wan::v1::Event>> Events(std::string_view job, int64_t after,
                                                     int limit) override {
    using Rows = std::vector<std::pair<int64_t, std::string>>;
    const absl::StatusOr<Rows> rows =
        Guard([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) -> absl::StatusOr<Rows> {
          SQLite::Statement select(
              *database_,
              "SELECT sequence, event FROM events WHERE job = (SELECT number FROM jobs WHERE name "
              "= ?) AND sequence > ? ORDER BY sequence LIMIT ?");
          select.bind(1, std::string(job));
          select.bind(2, after);
          select.bind(3, limit);
          Rows read;
          while (select.executeStep()) {
            read.emplace_back(select.getColumn(0).getInt64(), select.getColumn(1).getString());
          }
          return read;
        });
    if (!rows.ok()) return rows.status();
    std::vector<wan::v1::Event> events;
    for (const auto& [sequence, bytes] : *rows) {
      wan::v1::Event event;
      if (sequence != after + 1) {
        return DamagedError(job, absl::StrCat("its event ", after + 1, " is missing"));
      }
      if (!event.ParseFromString(bytes) || event.sequence() != sequence) {
        return DamagedError(job, absl::StrCat("its event ", sequence, " cannot be read"));
      }
      after = sequence;
      events.push_back(std::move(event));
    }
    return events;
  }

  absl::StatusOr<wan::v1::JobReport> Report(std::string_view job) override {
    const absl::StatusOr<std::string> bytes =
        Guard([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) -> absl::StatusOr<std::string> {
          SQLite::Statement select(
              *database_,
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
    return Guard([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) -> Result {
      return ReadJobFiles(*database_, job);
    });
  }

  absl::StatusOr<std::optional<PendingWebhook>> TakeWebhook(
      absl::Time now, absl::Time latest,
      const std::function<absl::Duration(int attempts)>& delay) override {
    std::optional<PendingWebhook> taken;
    const absl::Status status = Change([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) -> absl::Status {
      taken = TakeWebhookRow(*database_, now, latest, delay);
      return absl::OkStatus();
    });
    if (!status.ok()) return status;
    return taken;
  }

  absl::StatusOr<std::optional<absl::Time>> NextWebhook() override {
    using Result = absl::StatusOr<std::optional<absl::Time>>;
    return Guard([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) -> Result {
      return NextWebhookRow(*database_);
    });
  }

  absl::Status RemoveWebhook(int64_t number) override {
    return Change([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) -> absl::Status {
      RemoveWebhookRow(*database_, number);
      return absl::OkStatus();
    });
  }

  absl::StatusOr<std::string> Image(std::string_view job) override {
    return Guard([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) -> absl::StatusOr<std::string> {
      SQLite::Statement select(
          *database_,
          "SELECT image FROM images WHERE job = (SELECT number FROM jobs WHERE name = ?)");
      select.bind(1, std::string(job));
      return select.executeStep() ? select.getColumn(0).getString() : std::string();
    });
  }

 private:
  // Runs one call at a time under the lock. Only this function catches exceptions of SQLite.
  template <typename Body>
  auto Guard(const Body& body) -> decltype(body()) {
    absl::MutexLock lock(&mutex_);
    try {
      return body();
    } catch (const SQLite::Exception& error) {
      return SqliteStatus(error, where_);
    }
  }

  // Runs `body`, which returns absl::Status, in a transaction that is committed if that is OK. What
  // is committed has yet to be synced.
  template <typename Body>
  absl::Status Change(const Body& body) {
    return Guard([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) -> absl::Status {
      if (absl::Status ready = CheckReady(); !ready.ok()) return ready;
      SQLite::Transaction transaction(*database_);
      if (absl::Status status = body(); !status.ok()) return status;  // rolls back
      transaction.commit();
      return absl::OkStatus();
    });
  }

  // Returns the job whose column `key` has this value. DATA_LOSS if its row is damaged.
  absl::StatusOr<StoredJob> FindJob(const char* key, std::string_view value,
                                    const std::optional<absl::Status>& missing) {
    const absl::StatusOr<JobRow> row =
        Guard([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) -> absl::StatusOr<JobRow> {
          SQLite::Statement select(*database_, absl::StrCat(kSelectJob, "WHERE ", key, " = ?"));
          select.bind(1, std::string(value));
          if (select.executeStep()) return ReadRow(select);
          SQLite::Statement damaged(
              *database_,
              absl::StrCat("SELECT name, reason FROM damaged_jobs WHERE ", key, " = ?"));
          damaged.bind(1, std::string(value));
          if (!damaged.executeStep())
            return missing.has_value() ? *missing : MissingError(*database_, value);
          return DamagedError(damaged.getColumn(0).getString(), damaged.getColumn(1).getString());
        });
    if (!row.ok()) return row.status();
    return ToJob(*row);
  }

  absl::Status InsertOne(const StoredJob& stored, const std::string& image,
                         std::span<const wan::v1::Event> events)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const absl::StatusOr<int64_t> number = InsertJobRows(*database_, stored, image);
    if (number.ok()) InsertEvents(stored.job.name(), *number, events);
    return number.status();
  }

  // Waits until added jobs are on the disk; takes them back if that fails.
  absl::Status SyncOrRemove(std::span<const std::string> names) {
    absl::Status synced = sync_.Await();
    if (!synced.ok()) {
      Guard([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) -> absl::Status {
        unsynced_.Update(synced);
        for (const std::string& name : names) RemoveJob(name);
        return absl::OkStatus();
      }).IgnoreError();  // then they run after the next start, although their caller was refused
    }
    return synced;
  }

  // The next of a query's jobs, `scan` says which, in their order and at most `limit`.
  absl::StatusOr<std::vector<JobRow>> ReadFound(const JobQuery& query,
                                                const std::optional<JobPlace>& after, int limit,
                                                JobScan& scan) {
    using Rows = std::vector<JobRow>;
    return Guard([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) -> absl::StatusOr<Rows> {
      scan = ScanJobKeys(*database_, query, after, limit);
      Rows rows;
      SQLite::Statement select(*database_, absl::StrCat(kSelectJob, "WHERE number = ?"));
      std::erase_if(scan.found, [&](const JobPlace& place) {
        select.reset();
        select.bind(1, place.number);
        if (!select.executeStep()) return true;
        rows.push_back(ReadRow(select));
        return false;
      });
      return rows;
    });
  }

  // Returns the newest QUEUED and RUNNING rows with a number below `before`, newest first, at most
  // kRowsAtOnce. That bounds the work, however many jobs there are, because each state has an index
  // in this order.
  absl::StatusOr<std::vector<JobRow>> ReadUnfinished(int64_t before) {
    using Rows = std::vector<JobRow>;
    return Guard([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) -> absl::StatusOr<Rows> {
      SQLite::Database& db = *database_;
      std::vector<int64_t> numbers;
      SQLite::Statement find(db,
                             "SELECT number FROM jobs WHERE number < ? AND state = ? "
                             "ORDER BY number DESC LIMIT ?");
      for (const wan::v1::JobState state :
           {wan::v1::JOB_STATE_QUEUED, wan::v1::JOB_STATE_RUNNING}) {
        find.bind(1, before);
        find.bind(2, static_cast<int>(state));
        find.bind(3, kRowsAtOnce);
        while (find.executeStep()) numbers.push_back(find.getColumn(0).getInt64());
        find.reset();
      }
      std::sort(numbers.begin(), numbers.end(), std::greater<>());
      if (numbers.size() > kRowsAtOnce) numbers.resize(kRowsAtOnce);
      Rows rows;
      SQLite::Statement select(db, absl::StrCat(kSelectJob, "WHERE number = ?"));
      for (const int64_t number : numbers) {
        select.bind(1, number);
        if (select.executeStep()) rows.push_back(ReadRow(select));
        select.reset();
      }
      return rows;
    });
  }

  // Parses a row with no lock held. DATA_LOSS if it is damaged; it is set aside then.
  absl::StatusOr<StoredJob> ToJob(const JobRow& row) {
    StoredJob stored;
    const bool parsed = stored.job.ParseFromString(row.job);
    if (std::string damage = DamageOf(row, stored.job, parsed); !damage.empty()) {
      return SetAside(row, damage);
    }
    stored.request_digest = row.request_digest;
    stored.tied_to_caller = row.tied_to_caller;
    stored.job.set_last_sequence(row.last_sequence);
    return stored;
  }

  // Moves a damaged row to damaged_jobs, and reports it once.
  absl::Status SetAside(const JobRow& row, const std::string& damage) {
    absl::Status damaged = DamagedError(row.name, damage);
    bool first = false;
    Guard([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) -> absl::Status {
      first = told_.insert(row.number).second;
      SQLite::Transaction transaction(*database_);
      MoveToDamaged(*database_, row.number, damage);
      transaction.commit();
      return absl::OkStatus();
    }).IgnoreError();  // if the disk takes no writes, the row stays in the table and is skipped
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

  // OK if there is sense in writing.
  absl::Status CheckReady() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return unsynced_.ok() ? place_.Check(where_) : unsynced_;
  }

  // Takes back a job that was added.
  void RemoveJob(const std::string& name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    SQLite::Transaction transaction(*database_);
    SQLite::Statement find(*database_, "SELECT number FROM jobs WHERE name = ?");
    find.bind(1, name);
    if (find.executeStep()) DeleteJobRows(*database_, find.getColumn(0).getInt64());
    transaction.commit();
  }

  void InsertEvents(const std::string& job, int64_t number, std::span<const wan::v1::Event> events)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (events.empty()) return;
    SQLite::Statement insert(*database_,
                             "INSERT INTO events (job, sequence, event) VALUES (?, ?, ?)");
    for (const wan::v1::Event& event : events) {
      if (unsynced_events_.erase({job, event.sequence()}) > 0) {
        SQLite::Statement remove(*database_, "DELETE FROM events WHERE job = ? AND sequence = ?");
        remove.bind(1, number);
        remove.bind(2, event.sequence());
        remove.exec();
      }
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
    if (change.row.has_value()) UpdateJobRow(db, number, *change.row);
    InsertEvents(change.job, number, change.events);
    AddWebhookOf(db, change);
    if (change.report.has_value()) ReplaceReport(db, number, *change.report);
    if (change.files.has_value()) ReplaceJobFiles(db, number, *change.files);
    // The keys have the bytes of all that belongs to the job.
    if (change.row.has_value()) UpdateJobKeys(db, number, *change.row, change.labels_changed);
    return absl::OkStatus();
  }

  const std::string where_;  // the file, for messages
  const std::function<void(const absl::Status&)> on_problem_;
  const FilePlace place_;
  // Outside the lock: nobody waits for the disk who only reads.
  GroupSync sync_;
  absl::Mutex mutex_;
  // Why what was written last may not be durable. Nothing is written any more until it is.
  absl::Status unsynced_ ABSL_GUARDED_BY(mutex_);
  // Events, by job and sequence, that are there although their Apply was refused: it is repeated.
  std::set<std::pair<std::string, int64_t>> unsynced_events_ ABSL_GUARDED_BY(mutex_);
  // The numbers of the damaged rows that were reported.
  std::set<int64_t> told_ ABSL_GUARDED_BY(mutex_);
  const std::unique_ptr<SQLite::Database> database_ ABSL_PT_GUARDED_BY(mutex_);
};

// `open` may throw what SQLite throws; `prepare` is called under the store's lock.
absl::StatusOr<std::unique_ptr<JobStore>> OpenStore(
    const std::function<std::unique_ptr<SQLite::Database>()>& open,
    absl::Status (*prepare)(SQLite::Database&, const std::string&), const std::string& file,
    const std::string& where, std::function<void(const absl::Status&)> on_problem,
    std::function<absl::Status()> sync) {
  std::unique_ptr<SqliteJobStore> store;
  try {
    store = std::make_unique<SqliteJobStore>(open(), file, where, std::move(on_problem),
                                             std::move(sync));
  } catch (const SQLite::Exception& error) {
    return SqliteStatus(error, where);
  }
  absl::Status prepared = store->Prepare(prepare);
  if (!prepared.ok()) return prepared;
  return store;
}

std::unique_ptr<SQLite::Database> OpenToWrite(const std::string& name) {
  return std::make_unique<SQLite::Database>(name, SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE);
}

std::string WhereOf(const std::filesystem::path& file) {
  return absl::StrCat("job database ", file.string());
}

}  // namespace

absl::StatusOr<std::unique_ptr<JobStore>> OpenSqliteJobStore(
    const std::filesystem::path& file, std::function<void(const absl::Status&)> on_problem,
    std::function<absl::Status()> sync) {
  if (RepairIsPending(file)) {
    return absl::DataLossError(absl::StrCat(
        WhereOf(file), ": a repair was interrupted; run 'wanserve repair --data-dir DIR' again"));
  }
  if (sync == nullptr) {
    sync = [log = std::make_shared<LogFile>(file.string(), WhereOf(file))] { return log->Sync(); };
  }
  return OpenStore([&] { return OpenToWrite(file.string()); }, &PrepareDatabase, file.string(),
                   WhereOf(file), std::move(on_problem), std::move(sync));
}

absl::StatusOr<std::unique_ptr<JobStore>> OpenSqliteJobStoreForReading(
    const std::filesystem::path& file, std::function<void(const absl::Status&)> on_problem) {
  return OpenStore([&] { return OpenReadOnly(file); }, &PrepareForReading, file.string(),
                   WhereOf(file), std::move(on_problem), &SyncNothing);
}

absl::StatusOr<std::unique_ptr<JobStore>> OpenInMemoryJobStore() {
  const std::string name = ":memory:";
  return OpenStore([&] { return OpenToWrite(name); }, &PrepareDatabase, name,
                   "job database in memory", nullptr, &SyncNothing);
}

}  // namespace wan::server
