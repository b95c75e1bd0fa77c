#include "server/postgres/postgres_job_store.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "engine/api/errors.h"
#include "server/conversion/errors.h"
#include "server/postgres/event_pieces.h"
#include "server/postgres/job_scan.h"
#include "server/postgres/postgres_database.h"
#include "server/postgres/postgres_outbox.h"
#include "server/postgres/postgres_rows.h"
#include "server/store/await.h"
#include "server/store/job_pages.h"
#include "server/store/readable_rows.h"
#include "server/store/stored_rows.h"

namespace wan::server {
namespace {

size_t BytesOf(const std::vector<wan::v1::Event>& events) {
  size_t bytes = 0;
  for (const wan::v1::Event& event : events) bytes += event.ByteSizeLong();
  return bytes;
}

size_t BytesOf(std::span<const JobAddition> additions) {
  size_t bytes = 0;
  for (const JobAddition& addition : additions) {
    bytes += addition.job.job.ByteSizeLong() + BytesOf(addition.events);
    if (addition.inputs.image != nullptr) bytes += addition.inputs.image->size();
    for (const auto& [field, member] : kLatentsInputs) {
      const JobInputs::File& file = addition.inputs.*member;
      if (file != nullptr) bytes += file->size();
    }
  }
  return bytes;
}

size_t BytesOf(std::span<const JobChange> changes) {
  size_t bytes = 0;
  for (const JobChange& change : changes) {
    bytes += BytesOf(change.events);
    if (change.row.has_value()) bytes += change.row->ByteSizeLong();
    if (change.report.has_value()) bytes += change.report->ByteSizeLong();
  }
  return bytes;
}

class Store final : public JobStore {
 public:
  Store(std::unique_ptr<PostgresDatabase> database,
        std::function<void(const absl::Status&)> on_problem)
      : on_problem_(std::move(on_problem)), outbox_(*database), database_(std::move(database)) {}

  using JobStore::Apply;

  void InsertAll(std::span<const JobAddition> additions, Done done) override {
    for (const JobAddition& addition : additions) {
      absl::Status readable = CheckReadsBack(database_->where(), addition.job, addition.events);
      if (readable.ok()) continue;
      if (on_problem_ != nullptr) on_problem_(readable);
      return done(readable);
    }
    database_->Change(
        [this, additions](Connection& connection) { return InsertEach(connection, additions); },
        std::move(done), [this, additions] { OweRemovalOf(additions); }, BytesOf(additions));
  }

  void Remove(std::string_view job, Done done) override {
    database_->Change(
        [job = std::string(job)](Connection& connection) { return RemoveRow(connection, job); },
        std::move(done));
  }

  void Apply(std::span<const JobChange> asked, Done done) override {
    auto mended = std::make_shared<const std::vector<JobChange>>(
        MendedChanges(database_->where(), asked, on_problem_));
    const std::span<const JobChange> changes = mended->empty() ? asked : std::span(*mended);
    database_->Change(
        [this, changes](Connection& connection) -> absl::Status {
          for (const JobChange& change : changes) {
            absl::Status status = ApplyOne(connection, change);
            if (!status.ok()) return status;
          }
          return absl::OkStatus();
        },
        [this, changes, mended, done = std::move(done)](const absl::Status& status) {
          if (status.ok()) ForgetUncertain(changes);
          done(status);
        },
        [this, changes, mended] { NoteUncertain(changes); }, BytesOf(changes));
  }

  absl::StatusOr<StoredJob> Get(std::string_view job) override {
    return Find([&](Connection& connection) -> absl::StatusOr<FoundRow> {
      std::optional<FoundRow> found = FindRow(connection, job);
      if (!found.has_value()) return MissingRowError(connection, job);
      return *std::move(found);
    });
  }

  absl::StatusOr<StoredJob> FindByRequestId(std::string_view owner,
                                            std::string_view request_id) override {
    return Find([&](Connection& connection) -> absl::StatusOr<FoundRow> {
      std::optional<FoundRow> found = FindRowByRequest(connection, RequestKey(owner, request_id));
      if (!found.has_value()) return absl::NotFoundError("no job has this request_id");
      return *std::move(found);
    });
  }

  absl::StatusOr<JobPage> List(const JobQuery& query) override {
    return ReadPage(
        query,
        [&](const std::optional<JobPlace>& after, int limit, size_t bytes, JobScan& scan) {
          return database_->Read([&](Connection& connection) -> JobRows {
            return ScanRows(connection, query, after, limit, bytes, scan);
          });
        },
        [this](const JobRow& row) { return ToJob(row); });
  }

  absl::StatusOr<std::string> OwnerOf(std::string_view job) override {
    return database_->Read([&](Connection& connection) -> absl::StatusOr<std::string> {
      const Rows owner = connection.Run(
          "SELECT owner FROM jobs WHERE name = $1 UNION ALL "
          "SELECT owner FROM removed_jobs WHERE name = $1",
          {job});
      if (owner.empty()) return JobNotFoundError(job);
      return owner.Text(0, 0);
    });
  }

  absl::StatusOr<std::string> SecretKey() override {
    return database_->Read([](Connection& connection) -> absl::StatusOr<std::string> {
      return connection.Run("SELECT secret_key FROM schema_info").Text(0, 0);
    });
  }

  absl::StatusOr<std::vector<StoredJob>> Unfinished() override {
    std::vector<StoredJob> jobs;
    for (int64_t after = 0;;) {
      const JobRows rows = database_->Read([&](Connection& connection) -> JobRows {
        return UnfinishedRows(connection, after, kRowsAtOnce);
      });
      if (!rows.ok()) return rows.status();
      for (const JobRow& row : *rows) {
        after = row.number;
        absl::StatusOr<StoredJob> job = ToJob(row);
        if (job.ok()) jobs.push_back(*std::move(job));
      }
      if (static_cast<int>(rows->size()) < kRowsAtOnce) return jobs;
    }
  }

  absl::StatusOr<std::map<wan::v1::JobState, EndedTotals>> TotalsOfEnded(
      const std::optional<std::string>& owner) override {
    using Result = absl::StatusOr<std::map<wan::v1::JobState, EndedTotals>>;
    return database_->Read(
        [&](Connection& connection) -> Result { return TotalsRows(connection, owner); });
  }

  absl::StatusOr<std::vector<EndedJob>> OldestEnded(const EndedQuery& query) override {
    using Result = absl::StatusOr<std::vector<EndedJob>>;
    return database_->Read(
        [&](Connection& connection) -> Result { return OldestRows(connection, query); });
  }

  absl::StatusOr<std::vector<PrincipalUse>> UseOfRemoved(absl::Time since) override {
    using Result = absl::StatusOr<std::vector<PrincipalUse>>;
    return database_->Read(
        [&](Connection& connection) -> Result { return RemovedUseRows(connection, since); });
  }

  // PostgreSQL's autovacuum frees the space.
  absl::StatusOr<bool> Vacuum() override { return false; }

  absl::Status CheckWritable() override {
    return AwaitDone<absl::Status>([&](Done done) {
      const auto write = [](Connection& connection) {
        connection.Run("UPDATE schema_info SET version = version");
        return absl::OkStatus();
      };
      database_->Change(write, std::move(done));
    });
  }

  absl::StatusOr<std::vector<wan::v1::Event>> Events(std::string_view job, int64_t after,
                                                     int limit) override {
    using Result = absl::StatusOr<std::vector<EventRow>>;
    const Result rows = database_->Read(
        [&](Connection& connection) -> Result { return PieceRows(connection, job, after, limit); });
    if (!rows.ok()) return rows.status();
    absl::StatusOr<std::vector<wan::v1::Event>> events = ParseEvents(*rows, after);
    if (!events.ok()) return DamagedError(job, std::string(events.status().message()));
    return events;
  }

  absl::StatusOr<wan::v1::JobReport> Report(std::string_view job) override {
    const absl::StatusOr<std::string> bytes =
        database_->Read([&](Connection& connection) -> absl::StatusOr<std::string> {
          const Rows found = connection.Run(
              "SELECT report FROM reports JOIN jobs ON number = reports.job WHERE name = $1",
              {job});
          if (found.empty()) return absl::NotFoundError("the job has no report");
          return found.Text(0, 0);
        });
    if (!bytes.ok()) return bytes.status();
    wan::v1::JobReport report;
    if (!report.ParseFromString(*bytes)) return DamagedError(job, "its report cannot be read");
    return report;
  }

  absl::StatusOr<std::vector<JobFile>> Files(std::string_view job) override {
    using Result = absl::StatusOr<std::vector<JobFile>>;
    return database_->Read(
        [&](Connection& connection) -> Result { return FileRows(connection, job); });
  }

  absl::StatusOr<JobInputs> Inputs(std::string_view job) override {
    return database_->Read([&](Connection& connection) -> absl::StatusOr<JobInputs> {
      return InputRows(connection, job);
    });
  }

  WebhookOutbox& webhooks() override { return outbox_; }

 private:
  using JobRows = absl::StatusOr<std::vector<JobRow>>;

  template <typename FindBody>
  absl::StatusOr<StoredJob> Find(const FindBody& find) {
    const absl::StatusOr<FoundRow> found = database_->Read(find);
    if (!found.ok()) return found.status();
    if (!found->damage.empty()) return DamagedError(found->row.name, found->damage);
    return ToJob(found->row);
  }

  absl::Status InsertEach(Connection& connection, std::span<const JobAddition> additions) {
    for (const JobAddition& addition : additions) {
      const absl::StatusOr<int64_t> number = InsertRow(connection, addition.job, addition.inputs);
      if (!number.ok()) return number.status();
      absl::Status added = InsertPiece(connection, *number, addition.events, std::nullopt);
      if (!added.ok()) return added;
    }
    return absl::OkStatus();
  }

  // The caller is told that the jobs were not added, so they must not run if they were. If this
  // server ends before it reaches the database again, jobs that were added run after the next
  // start.
  void OweRemovalOf(std::span<const JobAddition> additions) {
    std::vector<std::string> names;
    for (const JobAddition& addition : additions) names.push_back(addition.job.job.name());
    database_->Owe([names = std::move(names)](Connection& connection) {
      for (const std::string& name : names) TakeBackRow(connection, name);
      return absl::OkStatus();
    });
  }

  absl::Status ApplyOne(Connection& connection, const JobChange& change) {
    const std::optional<int64_t> number = NumberOf(connection, change.job);
    if (!number.has_value()) return JobNotFoundError(change.job);
    if (change.row.has_value()) UpdateRow(connection, *number, *change.row);
    absl::Status added =
        InsertPiece(connection, *number, change.events, UncertainEventOf(change.job));
    if (!added.ok()) return added;
    AddWebhookRow(connection, *number, change);
    if (change.report.has_value()) ReplaceReportRow(connection, *number, *change.report);
    if (change.files.has_value()) ReplaceFileRows(connection, *number, *change.files);
    if (change.row.has_value()) CountEnd(connection, *number, *change.row);
    return absl::OkStatus();
  }

  std::optional<int64_t> UncertainEventOf(const std::string& job) {
    absl::MutexLock lock(&mutex_);
    const auto found = uncertain_events_.find(job);
    if (found == uncertain_events_.end()) return std::nullopt;
    return found->second;
  }

  void NoteUncertain(std::span<const JobChange> changes) {
    absl::MutexLock lock(&mutex_);
    for (const JobChange& change : changes) {
      if (change.events.empty()) continue;
      const int64_t first = change.events.front().sequence();
      const auto [known, added] = uncertain_events_.emplace(change.job, first);
      if (!added) known->second = std::min(known->second, first);
    }
  }

  void ForgetUncertain(std::span<const JobChange> changes) {
    absl::MutexLock lock(&mutex_);
    for (const JobChange& change : changes) {
      if (!change.events.empty()) uncertain_events_.erase(change.job);
    }
  }

  // Parses a row; if it is damaged, notes that, reports it once and returns DATA_LOSS.
  absl::StatusOr<StoredJob> ToJob(const JobRow& row) {
    StoredJob stored;
    const std::string damage = ReadRow(row, stored);
    if (!damage.empty()) return SetAside(row, damage);
    return stored;
  }

  absl::Status SetAside(const JobRow& row, const std::string& damage) {
    absl::Status damaged = DamagedError(row.name, damage);
    bool first = false;
    {
      absl::MutexLock lock(&mutex_);
      first = told_.insert(row.number).second;
    }
    if (!first) return damaged;
    database_->Change(
        [number = row.number, damage](Connection& connection) {
          NoteDamage(connection, number, damage);
          return absl::OkStatus();
        },
        [](const absl::Status& /*ignored*/) {});
    if (on_problem_ != nullptr) {
      on_problem_(WithMessage(damaged, absl::StrCat(database_->where(), ": ", damaged.message())));
    }
    return damaged;
  }

  // Callers see this error, so it does not name the database.
  static absl::Status DamagedError(std::string_view job, std::string_view damage) {
    return WithReason(
        absl::DataLossError(absl::StrCat(std::string(job), " is damaged: ", std::string(damage),
                                         "; its row is kept, and all other jobs are served")),
        kReasonJobDamaged);
  }

  const std::function<void(const absl::Status&)> on_problem_;
  absl::Mutex mutex_;
  // For each job, the sequence of the first event of a change whose commit was interrupted. The
  // store has refused that change; the caller will repeat it, possibly with other events.
  std::map<std::string, int64_t> uncertain_events_ ABSL_GUARDED_BY(mutex_);
  // The numbers of the damaged rows that were already reported.
  std::set<int64_t> told_ ABSL_GUARDED_BY(mutex_);
  PostgresOutbox outbox_;
  const std::unique_ptr<PostgresDatabase> database_;  // declared last: its pending calls use the
                                                      // members above
};

}  // namespace

absl::StatusOr<std::unique_ptr<JobStore>> OpenPostgresJobStore(
    const std::string& url, std::function<void(const absl::Status&)> on_problem, Clock& clock,
    const std::function<absl::Status(const std::string& database_id)>& accept) {
  absl::StatusOr<std::unique_ptr<PostgresDatabase>> database =
      PostgresDatabase::Open(url, clock, accept);
  if (!database.ok()) return database.status();
  return std::make_unique<Store>(*std::move(database), std::move(on_problem));
}

}  // namespace wan::server
