#include "server/store/repair.h"

#include <SQLiteCpp/SQLiteCpp.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "server/conversion/convert.h"
#include "server/conversion/job_inputs.h"
#include "server/store/database_pages.h"
#include "server/store/digest.h"
#include "server/store/durable_file.h"
#include "server/store/input_links.h"
#include "server/store/job_files.h"
#include "server/store/job_keys.h"
#include "server/store/job_rows.h"
#include "server/store/job_store.h"
#include "server/store/salvage.h"
#include "server/store/sqlite_schema.h"
#include "server/store/statements.h"
#include "server/store/webhook_rows.h"

namespace wan::server {
namespace {

namespace fs = std::filesystem;

constexpr char kDatabaseFile[] = "jobs.db";
constexpr char kLogSuffix[] = "-wal";
constexpr char kPendingSuffix[] = "-repairing";
constexpr char kNewSuffix[] = ".repaired";
// Position and number of the bytes that SQLite locks in every database file.
constexpr off_t kLockStart = 0x40000000;
constexpr off_t kLockBytes = 512;

// Locks the file, so that no SQLite can use it while the descriptor is open. This function does not
// use SQLite, which may refuse to open the file. The lock belongs to the descriptor, not to the
// process, so SQLite in this process respects it.
absl::Status LockOut(const Descriptor& file, const fs::path& path) {
  struct flock lock = {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = kLockStart;
  lock.l_len = kLockBytes;
  if (fcntl(file.get(), F_OFD_SETLK, &lock) == 0) return absl::OkStatus();
  if (errno != EAGAIN && errno != EACCES) {
    return ErrnoError(absl::StrCat("locking ", path.string()), errno);
  }
  return absl::UnavailableError(
      absl::StrCat("a server uses ", path.string(), "; stop it before a repair"));
}

// Returns whether SQLite finds the file undamaged. Returns an error if another program or a newer
// server wrote the file.
absl::StatusOr<bool> IsWhole(const fs::path& file) {
  const std::string where = absl::StrCat("job database ", file.string());
  try {
    const std::unique_ptr<SQLite::Database> db = OpenReadOnly(file);
    const absl::Status read = PrepareForReading(*db, where);
    if (absl::IsDataLoss(read)) return false;
    // Accept UNAVAILABLE, which means that an older server wrote the file and that the file only
    // needs a migration.
    if (!read.ok() && !absl::IsUnavailable(read)) return read;
    return db->execAndGet("PRAGMA integrity_check(1)").getString() == "ok";
  } catch (const SQLite::Exception& error) {
    const absl::Status status = SqliteStatus(error, where);
    if (absl::IsDataLoss(status)) return false;
    return status;
  }
}

std::string PagesOf(int count) { return absl::StrCat(count, count == 1 ? " page" : " pages"); }

bool IsEnd(const wan::v1::Event& event) {
  return event.has_completed() || event.has_failed() || event.has_cancelled();
}

// Sets the job's state and end as the event `end` describes.
void EndAs(const wan::v1::Event& end, wan::v1::Job& job) {
  *job.mutable_end_time() = end.time();
  if (end.has_completed()) {
    job.set_state(wan::v1::JOB_STATE_COMPLETED);
    *job.mutable_artifacts() = end.completed().artifacts();
  } else if (end.has_failed()) {
    job.set_state(wan::v1::JOB_STATE_FAILED);
    *job.mutable_error() = end.failed().status();
  } else {
    job.set_state(wan::v1::JOB_STATE_CANCELLED);
    *job.mutable_error() = ToProto(absl::CancelledError(std::string(end.cancelled().reason())));
  }
}

// Returns the event that must be the last one of an ended job.
wan::v1::Event EndOf(const wan::v1::Job& job) {
  wan::v1::Event event;
  *event.mutable_time() = job.end_time();
  event.set_attempt(std::max(job.attempt(), 1));
  switch (job.state()) {
    case wan::v1::JOB_STATE_COMPLETED:
      *event.mutable_completed()->mutable_artifacts() = job.artifacts();
      break;
    case wan::v1::JOB_STATE_FAILED:
      *event.mutable_failed()->mutable_status() = job.error();
      break;
    default:
      event.mutable_cancelled()->set_reason(job.error().message());
  }
  return event;
}

// Writes the rows that were found into a new database.
class Rebuild {
 public:
  Rebuild(const DatabasePages& pages, const Salvage& found, const InputLinks& links, absl::Time now,
          SQLite::Database& db, RepairResult& result)
      : pages_(pages),
        found_(found),
        links_(links),
        now_(now),
        db_(db),
        statements_(db),
        result_(result) {}

  void Write() {
    for (const std::string& name : found_.removed) NoteRemoved(db_, name, std::nullopt);
    for (const auto& [number, row] : found_.jobs) {
      if (found_.removed.contains(row.name)) continue;
      std::optional<StoredJob> stored = ReadJob(pages_, row.place);
      if (stored.has_value()) {
        WriteJob(number, *std::move(stored));
      } else {
        WriteDamaged(number, row);
      }
    }
    for (const auto& [number, name] : found_.names) {
      if (found_.jobs.contains(number) || found_.removed.contains(name)) continue;
      result_.losses.push_back(absl::StrCat(name, " is lost: its row cannot be read"));
    }
    if (found_.damaged_pages > 0) {
      result_.losses.push_back(absl::StrCat("what stood in ", PagesOf(found_.damaged_pages),
                                            " of the tables and is named nowhere else"));
    }
    if (pages_.damaged_frames() > 0) {
      result_.losses.push_back(absl::StrCat("what stood in ", PagesOf(pages_.damaged_frames()),
                                            " of the write-ahead log, such as the latest changes"));
    }
    WriteWebhooks();
    RebuildJobKeys(db_);
  }

 private:
  void WriteWebhooks() {
    int lost = 0;
    for (const auto& [number, place] : found_.webhooks) {
      const std::optional<SalvagedWebhook> row = ReadWebhook(pages_, place);
      if (row.has_value()) {
        InsertWebhookRow(db_, row->job, row->attempts, row->due);
      } else {
        ++lost;
      }
    }
    if (lost > 0) {
      result_.losses.push_back(
          absl::StrCat(lost, lost == 1 ? " report" : " reports", " to webhooks"));
    }
  }

  void Lose(const std::string& job, const std::string& what) {
    result_.losses.push_back(absl::StrCat(job, ": ", what));
  }

  void WriteJob(int64_t number, StoredJob stored) {
    wan::v1::Job& job = stored.job;
    std::map<int64_t, wan::v1::Event> events = EventsOf(number, job);
    JobInputs inputs;
    if (!IsFinal(job.state())) {
      inputs = InputsOf(number, job);
      if (const std::string_view missing = MissingInput(job, inputs); !missing.empty()) {
        inputs = {};
        FailWithout(std::string(missing), job, events);
      }
    }
    const absl::StatusOr<int64_t> inserted = InsertJobRows(statements_, stored, inputs, number);
    if (!inserted.ok()) return;  // an old version of a row that was already inserted
    ++result_.jobs;
    SQLite::Statement insert(db_, "INSERT INTO events (job, sequence, event) VALUES (?, ?, ?)");
    for (auto& [sequence, event] : events) {
      event.set_job(job.name());
      event.set_sequence(sequence);
      insert.bind(1, number);
      insert.bind(2, sequence);
      BindBlob(insert, 3, event.SerializeAsString());
      insert.exec();
      insert.reset();
      ++result_.events;
    }
    if (const auto files = found_.files.find(number); files != found_.files.end()) {
      std::vector<JobFile> named;
      for (const auto& [name, file] : files->second) named.push_back(file);
      ReplaceJobFiles(db_, number, named);
    }
    const auto place = found_.reports.find(number);
    if (place == found_.reports.end()) return;
    const std::optional<wan::v1::JobReport> report = ReadReport(pages_, place->second);
    if (report.has_value() && report->job() == job.name()) {
      ReplaceReport(db_, number, *report);
    } else {
      Lose(job.name(), "its report is lost");
    }
  }

  // Returns the job's events; the key is the sequence. Resolves contradictions between the job and
  // its events.
  std::map<int64_t, wan::v1::Event> EventsOf(int64_t number, wan::v1::Job& job) {
    std::map<int64_t, wan::v1::Event> events;
    const auto found = found_.events.find(number);
    if (found != found_.events.end()) {
      for (const auto& [sequence, place] : found->second) {
        std::optional<wan::v1::Event> event = ReadEvent(pages_, place);
        if (!event.has_value() || event->sequence() != sequence) continue;
        if (!event->job().empty() && event->job() != job.name()) continue;
        events[sequence] = *std::move(event);
      }
    }
    if (!events.contains(1)) {
      Lose(job.name(), "its first event was lost and has been made anew");
      wan::v1::Event& first = events[1];
      first.set_attempt(1);
      *first.mutable_time() = job.create_time();
      first.mutable_queued();
    }
    int64_t next = 1;
    for (const auto& [sequence, event] : events) {
      if (sequence > next) {
        Lose(job.name(), absl::StrCat("its events from ", next, " to ", sequence - 1,
                                      " are lost; WatchJob ends there with DATA_LOSS"));
      }
      next = sequence + 1;
    }
    const wan::v1::Event& last = events.rbegin()->second;
    if (!IsFinal(job.state()) && IsEnd(last)) {
      EndAs(last, job);
      Lose(job.name(), "its row was an old one; its end was taken from its events");
    } else if (IsFinal(job.state()) && !IsEnd(last)) {
      events[next] = EndOf(job);
      Lose(job.name(), "its last event was lost and has been made anew; others may be lost");
    }
    return events;
  }

  // Returns the input files of a job that are undamaged.
  JobInputs InputsOf(int64_t number, const wan::v1::Job& job) const {
    JobInputs inputs;
    const auto take = [](const std::string& digest, std::optional<std::string> bytes,
                         JobInputs::File& file) {
      if (bytes.has_value() && Sha256Hex(*bytes) == digest) {
        file = std::make_shared<const std::string>(*std::move(bytes));
      }
    };
    if (const auto image = found_.images.find(number); image != found_.images.end()) {
      take(job.image_sha256(), ReadImage(pages_, image->second), inputs.image);
    }
    if (const auto found = found_.latents.find(number); found != found_.latents.end()) {
      for (const auto& [field, member] : kLatentsInputs) {
        const auto place = found->second.find(std::string(field));
        if (place == found->second.end()) continue;
        take(LatentsOf(job.request(), member).sha256(), ReadLatents(pages_, place->second),
             inputs.*member);
      }
    }
    links_.Complete(job, inputs).IgnoreError();  // a file that cannot be read is lost
    return inputs;
  }

  // Ends a job as FAILED if the file of its request's field `input` is lost.
  void FailWithout(const std::string& input, wan::v1::Job& job,
                   std::map<int64_t, wan::v1::Event>& events) {
    const absl::Status error = absl::DataLossError(
        absl::StrCat("the ", input,
                     " of the request was lost when the database was repaired; create the job "
                     "again"));
    job.set_state(wan::v1::JOB_STATE_FAILED);
    *job.mutable_error() = ToProto(error);
    *job.mutable_end_time() = ToProto(now_);
    events[events.rbegin()->first + 1] = EndOf(job);
    Lose(job.name(), absl::StrCat("its ", input, " is lost, so it has FAILED"));
  }

  void WriteDamaged(int64_t number, const SalvagedJob& row) {
    const std::optional<DatabaseRecord> record = pages_.ReadRecord(row.place);
    SQLite::Statement insert(db_,
                             "INSERT OR IGNORE INTO damaged_jobs VALUES (?, ?, ?, ?, ?, ?, ?, ?)");
    insert.bind(1, number);
    for (size_t column = 1; column < 7 && record.has_value(); ++column) {
      if (column >= record->values.size()) break;
      const auto index = static_cast<int>(column) + 1;
      if (const auto* const integer = std::get_if<int64_t>(&record->values[column])) {
        insert.bind(index, *integer);
      } else if (const auto* const text = std::get_if<std::string>(&record->values[column])) {
        if (column == 6) {
          BindBlob(insert, index, *text);
        } else {
          insert.bind(index, *text);
        }
      }
    }
    insert.bind(8, "its row was damaged when the database was repaired");
    insert.exec();
    Lose(row.name, "its row is damaged; it is kept in the table damaged_jobs");
  }

  const DatabasePages& pages_;
  const Salvage& found_;
  const InputLinks& links_;
  const absl::Time now_;
  SQLite::Database& db_;
  Statements statements_;
  RepairResult& result_;
};

uint64_t BytesBelow(const fs::path& folder) {
  uint64_t bytes = 0;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder, error)) {
    std::error_code ignored;
    if (entry.is_regular_file(ignored)) bytes += entry.file_size(ignored);
  }
  return bytes;
}

void ListUnknownFiles(SQLite::Database& db, const fs::path& artifacts, RepairResult& result) {
  std::error_code error;
  SQLite::Statement known(db,
                          "SELECT 1 FROM jobs WHERE name = ?1 UNION ALL SELECT 1 FROM damaged_jobs "
                          "WHERE name = ?1 UNION ALL SELECT 1 FROM removed_jobs WHERE name = ?1");
  for (const fs::directory_entry& entry : fs::directory_iterator(artifacts, error)) {
    known.reset();
    known.bind(1, absl::StrCat("jobs/", entry.path().filename().string()));
    if (known.executeStep()) continue;
    result.unknown_files.push_back(
        absl::StrCat(entry.path().string(), " (", BytesBelow(entry.path()), " bytes)"));
  }
  std::sort(result.unknown_files.begin(), result.unknown_files.end());
}

absl::Status WriteNew(const DatabasePages& pages, const fs::path& file, const fs::path& data_dir,
                      absl::Time now, RepairResult& result) {
  const std::string where = absl::StrCat("new job database ", file.string());
  try {
    SQLite::Database db(file.string(), SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE);
    if (absl::Status status = PrepareDatabase(db, where); !status.ok()) return status;
    SQLite::Transaction transaction(db);
    Rebuild(pages, FindRows(pages), InputLinks(data_dir), now, db, result).Write();
    ListUnknownFiles(db, data_dir / "artifacts", result);
    transaction.commit();
    db.exec("PRAGMA wal_checkpoint(TRUNCATE)");
  } catch (const SQLite::Exception& error) {
    return SqliteStatus(error, where);
  }
  return SyncPath(file);
}

// If an earlier repair was interrupted, returns the damaged file that the earlier repair has put
// aside; otherwise nothing.
std::optional<fs::path> PutAsideBefore(const fs::path& database) {
  std::ifstream pending(database.string() + kPendingSuffix);
  if (!pending.is_open()) return std::nullopt;
  const std::string name((std::istreambuf_iterator<char>(pending)),
                         std::istreambuf_iterator<char>());
  return database.parent_path() / name;
}

// Links the damaged file and its log under another name in the same folder, and returns that name.
absl::StatusOr<fs::path> PutAside(const fs::path& database, absl::Time now) {
  const std::string stem = absl::StrCat(
      database.string(), ".damaged-", absl::FormatTime("%Y%m%dT%H%M%SZ", now, absl::UTCTimeZone()));
  std::string aside = stem;
  for (int i = 2; fs::exists(aside); ++i) aside = absl::StrCat(stem, "-", i);
  std::error_code error;
  fs::create_hard_link(database, aside, error);
  if (!error && fs::exists(database.string() + kLogSuffix)) {
    fs::create_hard_link(database.string() + kLogSuffix, aside + kLogSuffix, error);
  }
  if (error) return ErrnoError(absl::StrCat("keeping the damaged file as ", aside), error.value());
  return aside;
}

// Replaces the damaged file by the new one. Removes the log first, because SQLite would apply it to
// the new file. If the exchange is interrupted, a marker file prevents servers from using the old
// file without its log.
absl::Status Exchange(const fs::path& database, const fs::path& fresh, const fs::path& aside) {
  const fs::path marker = database.string() + kPendingSuffix;
  absl::Status status = ReplaceFile(marker, aside.filename().string(), "");
  if (!status.ok()) return status;
  std::error_code error;
  fs::remove(database.string() + kLogSuffix, error);
  if (error) return ErrnoError("removing the old write-ahead log", error.value());
  fs::rename(fresh, database, error);
  if (error) return ErrnoError("renaming the new database into place", error.value());
  if (status = SyncPath(database.parent_path()); !status.ok()) return status;
  fs::remove(marker, error);
  if (error) return ErrnoError(absl::StrCat("removing ", marker.string()), error.value());
  return SyncPath(database.parent_path());
}

}  // namespace

bool RepairIsPending(const fs::path& database) {
  std::error_code error;
  return fs::exists(database.string() + kPendingSuffix, error);
}

absl::StatusOr<RepairResult> RepairDatabase(const fs::path& data_dir, absl::Time now) {
  const fs::path database = data_dir / kDatabaseFile;
  const Descriptor file(open(database.c_str(), O_RDWR | O_CLOEXEC));
  if (file.get() < 0) {
    return errno == ENOENT ? absl::NotFoundError(absl::StrCat("there is no ", database.string()))
                           : ErrnoError(absl::StrCat("opening ", database.string()), errno);
  }
  if (absl::Status locked = LockOut(file, database); !locked.ok()) return locked;

  RepairResult result;
  const std::optional<fs::path> before = PutAsideBefore(database);
  const fs::path source = before.value_or(database);
  const absl::StatusOr<DatabasePages> pages = DatabasePages::Open(source);
  if (!pages.ok()) return pages.status();
  const absl::StatusOr<bool> whole = IsWhole(source);
  if (!whole.ok()) return whole.status();
  result.was_whole = *whole && pages->damaged_frames() == 0 && !before.has_value();
  if (result.was_whole) return result;

  const fs::path fresh = database.string() + kNewSuffix;
  const auto remove_fresh = [&] {
    for (const char* const suffix : {"", kLogSuffix, "-shm", "-journal"}) {
      std::error_code ignored;
      fs::remove(fresh.string() + suffix, ignored);
    }
  };
  remove_fresh();
  const absl::Cleanup clean = remove_fresh;
  absl::Status status = WriteNew(*pages, fresh, data_dir, now, result);
  if (!status.ok()) return status;
  if (before.has_value()) {
    result.kept = *before;
  } else {
    const absl::StatusOr<fs::path> aside = PutAside(database, now);
    if (!aside.ok()) return aside.status();
    result.kept = *aside;
  }
  status = Exchange(database, fresh, result.kept);
  if (!status.ok()) return status;
  return result;
}

}  // namespace wan::server
