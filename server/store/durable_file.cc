#include "server/store/durable_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "engine/api/storage_error.h"

namespace wan::server {
namespace {

absl::Status WriteAll(int fd, std::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t written = write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return ErrnoError(absl::StrCat("writing ", path), errno);
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return absl::OkStatus();
}

absl::Status WriteSynced(const std::filesystem::path& path, std::string_view head,
                         std::string_view bytes) {
  const Descriptor file(
      open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, S_IRUSR | S_IWUSR));
  if (file.get() < 0) return ErrnoError(absl::StrCat("creating ", path.string()), errno);
  if (absl::Status status = WriteAll(file.get(), head, path); !status.ok()) return status;
  if (absl::Status status = WriteAll(file.get(), bytes, path); !status.ok()) return status;
  if (fsync(file.get()) != 0) return ErrnoError(absl::StrCat("syncing ", path.string()), errno);
  return absl::OkStatus();
}

}  // namespace

Descriptor::~Descriptor() {
  if (fd_ >= 0) close(fd_);
}

absl::Status ErrnoError(const std::string& what, int error) {
  return WithStorageReason(absl::ErrnoToStatus(error, what), error);
}

absl::Status SyncPath(const std::filesystem::path& path) {
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) return ErrnoError(absl::StrCat("opening ", path.string()), errno);
  if (fsync(file.get()) != 0) return ErrnoError(absl::StrCat("syncing ", path.string()), errno);
  return absl::OkStatus();
}

absl::Status ReplaceFile(const std::filesystem::path& path, std::string_view head,
                         std::string_view bytes) {
  std::filesystem::path beside = path;
  beside += ".new";
  absl::Status status = WriteSynced(beside, head, bytes);
  if (status.ok() && rename(beside.c_str(), path.c_str()) != 0) {
    status = ErrnoError(absl::StrCat("renaming ", beside.string(), " into place"), errno);
  }
  if (!status.ok()) {
    std::error_code ignored;  // ignore errors, because the next call overwrites the file
    std::filesystem::remove(beside, ignored);
    return status;
  }
  return SyncPath(path.parent_path());
}

}  // namespace wan::server
