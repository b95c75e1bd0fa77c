#include "server/store/folder_owner.h"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>
#include <fstream>
#include <string>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "server/store/durable_file.h"

namespace wan::server {
namespace {

// The file with the id of the database outside the folder; folders with a SQLite file have none.
constexpr char kOwnerFile[] = "store_id";
constexpr char kSqliteFile[] = "jobs.db";
constexpr char kLockFile[] = "server.lock";

bool Exists(const std::filesystem::path& file) {
  std::error_code unknown;  // opening the file fails then as well, and says why
  return std::filesystem::exists(file, unknown);
}

absl::Status BelongsTo(const std::filesystem::path& folder, std::string_view whom,
                       std::string_view remedy) {
  return absl::FailedPreconditionError(
      absl::StrCat("data_dir ", folder.string(), ": its videos belong to ", std::string(whom),
                   "; this server could not show them, and would remove the jobs' savepoints; ",
                   std::string(remedy)));
}

}  // namespace

absl::Status BindFolder(const std::filesystem::path& folder, std::string_view database_id) {
  const std::filesystem::path owner = folder / kOwnerFile;
  const bool owned = Exists(owner);
  if (database_id.empty()) {
    if (!owned) return absl::OkStatus();
    return BelongsTo(folder, "jobs in a PostgreSQL database",
                     "set store to the URL of that database, or choose another data_dir");
  }
  if (Exists(folder / kSqliteFile)) {
    return BelongsTo(folder, "the jobs in its file jobs.db",
                     "choose another data_dir for a server with store");
  }
  if (!owned) return ReplaceFile(owner, database_id, "\n");
  std::string id;
  std::ifstream(owner) >> id;
  if (id == database_id) return absl::OkStatus();
  return BelongsTo(folder, "jobs in another PostgreSQL database",
                   "set store to the URL of that database, or choose another data_dir");
}

absl::StatusOr<std::unique_ptr<const Descriptor>> LockFolder(const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / kLockFile;
  int opened = open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  // On a disk that takes no writes, the server may still show its jobs.
  if (opened < 0 && errno == EROFS) opened = open(file.c_str(), O_RDONLY | O_CLOEXEC);
  auto lock = std::make_unique<const Descriptor>(opened);
  if (lock->get() < 0) return ErrnoError(absl::StrCat("cannot open ", file.string()), errno);
  if (flock(lock->get(), LOCK_EX | LOCK_NB) == 0) return lock;
  if (errno != EWOULDBLOCK) return ErrnoError(absl::StrCat("cannot lock ", file.string()), errno);
  return absl::UnavailableError(
      absl::StrCat("data_dir ", folder.string(),
                   ": another server uses the folder; stop that server, or choose another "
                   "data_dir"));
}

}  // namespace wan::server
