// What lies in the server's own folders and in its operator's files.
#include <SQLiteCpp/Database.h>
#include <SQLiteCpp/Statement.h>
#include <sqlite3.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "server/auth/token_file.h"
#include "server/config/complete_config.h"
#include "server/config/yaml_config.h"
#include "server/store/await.h"
#include "server/store/savepoint_store.h"
#include "server/store/sqlite_job_store.h"
#include "tests/fuzz/fuzz_target.h"

namespace wan {
namespace {

namespace fs = std::filesystem;

constexpr auto kOk = absl::StatusCode::kOk;
constexpr auto kDataLoss = absl::StatusCode::kDataLoss;
constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
constexpr char kJob[] = "jobs/0123456789abcdef";

// In memory where the machine has such a file system: the store syncs.
fs::path FolderOfThisProcess() {
  const fs::path parent = fs::exists("/dev/shm") ? "/dev/shm" : fs::temp_directory_path();
  return parent / absl::StrCat("wan_fuzz_", static_cast<int>(getpid()));
}

// A folder with a database of one ended job with one event and a report, as `kDatabase`.
class StoreFolder {
 public:
  StoreFolder() : path_(FolderOfThisProcess()) {
    fs::create_directories(path_);
    auto store = server::OpenSqliteJobStore(path_ / "kept.db");
    Require(store.ok(), "a new store can be opened");
    server::StoredJob job;
    job.job.set_name(kJob);
    job.job.set_state(wan::v1::JOB_STATE_QUEUED);
    wan::v1::Event event;
    event.set_sequence(1);
    event.mutable_queued();
    const server::JobAddition added{job, {}, {event}};
    const absl::Status inserted = server::AwaitDone<absl::Status>([&](server::JobStore::Done done) {
      (*store)->InsertAll({&added, 1}, std::move(done));
    });
    Require(inserted.ok(), "a job can be added");
    server::JobChange end;
    end.job = kJob;
    end.row = job.job;
    end.row->set_state(wan::v1::JOB_STATE_COMPLETED);
    end.report.emplace();
    end.report->set_job(kJob);
    const absl::Status applied = server::AwaitDone<absl::Status>([&](server::JobStore::Done done) {
      (*store)->Apply({&end, 1}, std::move(done));
    });
    Require(applied.ok(), "a job can end");
  }
  ~StoreFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }

  // A fresh copy of the database.
  fs::path Copy() const {
    const fs::path copy = path_ / "jobs.db";
    for (const char* const suffix : {"-wal", "-shm"}) fs::remove(copy.string() + suffix);
    fs::copy_file(path_ / "kept.db", copy, fs::copy_options::overwrite_existing);
    return copy;
  }

 private:
  const fs::path path_;
};

}  // namespace

void FuzzConfig(FuzzInput input) {
  server::ServerConfig config;
  absl::Status status = server::ApplyYaml(TextOf(input), "config.yaml", config);
  RequireCode(status, {kOk, kInvalid});
  if (!status.ok()) return;
  status = server::Complete(config);
  RequireCode(status, {kOk, kInvalid});
  if (!status.ok()) return;
  const std::string text = server::ToYaml(config);
  server::ServerConfig again;
  const absl::Status reread = server::ApplyYaml(text, "config.yaml", again);
  Require(reread.ok(), absl::StrCat("a config that was written is read: ", reread.message()));
  Require(server::ToYaml(again) == text, "a config survives its writing");
}

void FuzzTokenFile(FuzzInput input) {
  const auto credentials = server::ParseTokenFile(TextOf(input), "tokens");
  RequireCode(credentials.status(), {kOk, kInvalid});
  if (!credentials.ok()) return;
  const auto again = server::ParseTokenFile(server::TokenFileText(*credentials), "tokens");
  Require(again.ok() && *again == *credentials, "a token file survives its writing");
}

// The savepoint as it lies on the disk: whatever is there, only what was written is believed.
void FuzzSavepoint(FuzzInput input) {
  static const fs::path* const root = [] {
    static const fs::path made = FolderOfThisProcess() / "savepoints_of_fuzz";
    fs::create_directories(made / "savepoints");
    return &made;
  }();
  const server::SavepointStore store(*root);
  std::ofstream(*root / "savepoints" / "0123456789abcdef", std::ios::binary) << TextOf(input);
  const absl::StatusOr<server::KeptSavepoint> kept = store.Read(kJob);
  RequireCode(kept.status(), {kOk, kDataLoss, absl::StatusCode::kFailedPrecondition});
  if (!kept.ok()) return;
  Require(store.Write(kJob, kept->origin, kept->savepoint).ok(), "a savepoint can be written");
  const absl::StatusOr<server::KeptSavepoint> again = store.Read(kJob);
  Require(again.ok() && again->savepoint.bytes == kept->savepoint.bytes &&
              again->savepoint.steps_done == kept->savepoint.steps_done &&
              again->origin.files == kept->origin.files,
          "a savepoint survives its writing");
}

// One row of the database, which the first byte chooses, holds the rest of the input. It costs its
// own job at most.
void FuzzStore(FuzzInput input) {
  static const StoreFolder folder;
  if (input.empty()) return;
  const fs::path file = folder.Copy();
  {
    static constexpr const char* kRows[] = {
        "UPDATE jobs SET job = ?", "UPDATE events SET event = ?", "UPDATE reports SET report = ?"};
    SQLite::Database database(file.string(), SQLite::OPEN_READWRITE);
    SQLite::Statement update(database, kRows[input[0] % std::size(kRows)]);
    update.bind(1, input.data() + 1, static_cast<int>(input.size() - 1));
    Require(update.exec() == 1, "the row is there");
  }
  int problems = 0;
  auto store = server::OpenSqliteJobStore(
      file, [&](const absl::Status&) { ++problems; }, [] { return absl::OkStatus(); });
  Require(store.ok(), "a damaged row does not keep the store from opening");
  constexpr auto kNotFound = absl::StatusCode::kNotFound;
  RequireCode((*store)->Get(kJob).status(), {kOk, kDataLoss});
  RequireCode((*store)->List({}).status(), {kOk});
  RequireCode((*store)->Unfinished().status(), {kOk});
  RequireCode((*store)->Events(kJob, 0, 100).status(), {kOk, kDataLoss});
  RequireCode((*store)->Report(kJob).status(), {kOk, kDataLoss, kNotFound});
  Require(problems <= 1, "a damaged row is told once");
}

}  // namespace wan
