#include "server/postgres/postgres_database.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "engine/api/errors.h"
#include "server/conversion/errors.h"

namespace wan::server {
namespace {

// Maximum number of changes in one transaction.
constexpr size_t kChangesAtOnce = 64;
// A transaction takes no further change once its changes have this size together.
constexpr size_t kBytesAtOnce = size_t{16} << 20;
// Maximum number of connections that read at the same time; other readers wait.
constexpr int kReaders = 4;
constexpr absl::Duration kWaitToRead = absl::Seconds(10);
constexpr int64_t kNanosBetweenAttempts = 1'000'000'000;

// An error that ends the start has no reason, because a server that cannot reach its database does
// not start.
absl::Status WithoutReason(const absl::Status& status) { return {status.code(), status.message()}; }

bool LacksStorage(const absl::Status& status) {
  return ReasonOf(status) == kReasonStorageUnavailable;
}

}  // namespace

absl::StatusOr<std::unique_ptr<PostgresDatabase>> PostgresDatabase::Open(const std::string& url,
                                                                         Clock& clock,
                                                                         const Accept& accept,
                                                                         absl::Duration patience) {
  std::unique_ptr<PostgresDatabase> database(new PostgresDatabase(url, clock, patience));
  if (absl::Status status = database->OpenFirst(accept); !status.ok()) {
    return WithoutReason(status);
  }
  database->writer_ = std::thread([self = database.get()] { self->WriteLoop(); });
  return database;
}

absl::Status PostgresDatabase::OpenFirst(const Accept& accept) {
  absl::StatusOr<std::unique_ptr<Connection>> connection = Connect();
  if (!connection.ok()) return connection.status();
  writing_ = *std::move(connection);
  where_ = writing_->where();
  if (absl::Status taken = sole_.Take(*writing_); !taken.ok()) return taken;
  if (absl::Status migrated = MigrateSchema(*writing_); !migrated.ok()) return migrated;
  absl::StatusOr<std::string> id = DatabaseId(*writing_);
  if (!id.ok()) return id.status();
  if (accept != nullptr) {
    if (absl::Status accepted = accept(*id); !accepted.ok()) return accepted;
  }
  return sole_.Begin(*writing_);
}

PostgresDatabase::~PostgresDatabase() {
  {
    absl::MutexLock lock(&mutex_);
    stop_ = true;
  }
  if (writer_.joinable()) writer_.join();
}

void PostgresDatabase::Change(Body body, Done done, std::function<void()> uncertain, size_t bytes) {
  absl::MutexLock lock(&mutex_);
  tasks_.push_back({std::move(body), std::move(done), std::move(uncertain), bytes});
}

void PostgresDatabase::Owe(Body body) {
  absl::MutexLock lock(&mutex_);
  debts_.push_back(std::move(body));
}

void PostgresDatabase::WriteLoop() {
  const auto wanted = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return !tasks_.empty() || stop_;
  };
  absl::Status away;  // why the object, which is being destroyed, writes nothing more
  for (;;) {
    std::vector<Task> group;
    bool stop = false;
    {
      absl::MutexLock lock(&mutex_);
      mutex_.Await(absl::Condition(&wanted));
      if (tasks_.empty()) return;
      group = TakeGroup();
      stop = stop_;
    }
    if (!away.ok()) {
      for (const Task& task : group) task.done(away);
      continue;
    }
    absl::Status status = WriteGroup(group);
    if (stop && LacksStorage(status)) away = std::move(status);
  }
}

std::vector<PostgresDatabase::Task> PostgresDatabase::TakeGroup() {
  size_t bytes = 0;
  auto end = tasks_.begin();
  while (end != tasks_.end() && bytes < kBytesAtOnce &&
         static_cast<size_t>(end - tasks_.begin()) < kChangesAtOnce) {
    bytes += end->bytes;
    ++end;
  }
  std::vector<Task> group(std::make_move_iterator(tasks_.begin()), std::make_move_iterator(end));
  tasks_.erase(tasks_.begin(), end);
  return group;
}

absl::Status PostgresDatabase::WriteGroup(std::span<Task> group) {
  bool uncertain = false;
  absl::Status status = Transact(group, uncertain);
  // Only a lack of storage is the error of every task; any other error is that of one of them.
  if (!status.ok() && !LacksStorage(status) && group.size() > 1) {
    for (size_t i = 0; i < group.size(); ++i) {
      status = WriteGroup(group.subspan(i, 1));
      // The database may need long for each further attempt, so make one for all that are left.
      if (LacksStorage(status) && i + 1 < group.size()) return WriteGroup(group.subspan(i + 1));
    }
    return status;
  }
  for (const Task& task : group) {
    if (uncertain && task.uncertain != nullptr) task.uncertain();
  }
  for (const Task& task : group) task.done(status);
  return status;
}

absl::Status PostgresDatabase::Transact(std::span<const Task> group, bool& uncertain) {
  if (absl::Status begun = Begin(); !begun.ok()) return begun;
  absl::Status refused;
  for (const Task& task : group) {
    refused = task.body(*writing_);
    if (writing_->failed() || !refused.ok()) break;
  }
  if (!writing_->failed() && refused.ok()) {
    writing_->RunScript("COMMIT");
    uncertain = writing_->lost();
  }
  absl::Status status = writing_->TakeStatus();
  if (status.ok()) status = refused;
  if (!status.ok() && !writing_->lost()) {
    writing_->RunScript("ROLLBACK");
    writing_->TakeStatus().IgnoreError();  // a connection that fails here is lost
  }
  return status;
}

absl::Status PostgresDatabase::Begin() {
  if (writing_ != nullptr && !writing_->lost()) {
    writing_->RunScript("BEGIN");
    absl::Status status = writing_->TakeStatus();
    if (status.ok() || !writing_->lost()) return status;
  }
  if (absl::Status connected = ConnectWriter(); !connected.ok()) return connected;
  writing_->RunScript("BEGIN");
  return writing_->TakeStatus();
}

absl::Status PostgresDatabase::ConnectWriter() {
  writing_ = nullptr;
  absl::StatusOr<std::unique_ptr<Connection>> connection = Connect();
  if (!connection.ok()) return connection.status();
  absl::Status status = sole_.Take(**connection);
  if (!status.ok()) {
    // While this server writes nothing, it is as if the disk took no writes.
    return ReasonOf(status).empty() ? WithReason(std::move(status), kReasonStorageUnavailable)
                                    : status;
  }
  writing_ = *std::move(connection);
  status = PayDebts();
  if (!status.ok()) writing_ = nullptr;
  return status;
}

absl::Status PostgresDatabase::PayDebts() {
  std::vector<Body> debts;
  {
    absl::MutexLock lock(&mutex_);
    debts = debts_;
  }
  if (debts.empty()) return absl::OkStatus();
  writing_->RunScript("BEGIN");
  for (const Body& debt : debts) debt(*writing_).IgnoreError();
  writing_->RunScript("COMMIT");
  absl::Status status = writing_->TakeStatus();
  if (!status.ok()) return status;
  absl::MutexLock lock(&mutex_);
  debts_.erase(debts_.begin(), debts_.begin() + static_cast<std::ptrdiff_t>(debts.size()));
  return status;
}

absl::StatusOr<std::unique_ptr<Connection>> PostgresDatabase::Connect() {
  {
    absl::MutexLock lock(&mutex_);
    if (!away_.ok() && clock_.MonotonicNanos() < away_until_) return away_;
  }
  absl::StatusOr<std::unique_ptr<Connection>> connection = Connection::Open(url_, patience_);
  absl::MutexLock lock(&mutex_);
  away_ = connection.status();
  away_until_ = clock_.MonotonicNanos() + kNanosBetweenAttempts;
  return connection;
}

absl::StatusOr<std::unique_ptr<Connection>> PostgresDatabase::Borrow() {
  {
    const auto free = [this]()
                          ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return borrowed_ < kReaders; };
    absl::MutexLock lock(&mutex_);
    if (!mutex_.AwaitWithTimeout(absl::Condition(&free), std::min(kWaitToRead, patience_))) {
      return WithReason(
          absl::UnavailableError(absl::StrCat(where_, ": all ", kReaders,
                                              " connections that read are busy; check its load")),
          kReasonStorageUnavailable);
    }
    if (!debts_.empty()) {
      return WithReason(
          absl::UnavailableError(absl::StrCat(
              where_, ": the connection was lost during a commit, whose result is not known yet")),
          kReasonStorageUnavailable);
    }
    ++borrowed_;
    if (!idle_.empty()) {
      std::unique_ptr<Connection> connection = std::move(idle_.back());
      idle_.pop_back();
      return connection;
    }
  }
  absl::StatusOr<std::unique_ptr<Connection>> connection = Connect();
  if (!connection.ok()) {
    absl::MutexLock lock(&mutex_);
    --borrowed_;
  }
  return connection;
}

void PostgresDatabase::GiveBack(std::unique_ptr<Connection> connection) {
  absl::MutexLock lock(&mutex_);
  --borrowed_;
  if (!connection->lost()) idle_.push_back(std::move(connection));
}

void PostgresDatabase::DropIdle() {
  std::vector<std::unique_ptr<Connection>> dropped;
  absl::MutexLock lock(&mutex_);
  dropped.swap(idle_);
}

}  // namespace wan::server
