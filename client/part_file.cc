#include "client/part_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <string>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"

namespace wan::client {
namespace {

absl::Status FileError(std::string_view what, const std::filesystem::path& path, int error) {
  return absl::InternalError(absl::StrCat("cannot ", absl::string_view(what.data(), what.size()),
                                          " ", path.string(), ": ",
                                          std::generic_category().message(error)));
}

}  // namespace

absl::Status CheckReplaceable(const std::filesystem::path& path) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::symlink_status(path, error);
  switch (status.type()) {
    case std::filesystem::file_type::not_found:
    case std::filesystem::file_type::regular:
      return absl::OkStatus();
    case std::filesystem::file_type::directory:
      return absl::InvalidArgumentError(absl::StrCat(path.string(), " is a folder"));
    case std::filesystem::file_type::symlink:
      return absl::InvalidArgumentError(
          absl::StrCat(path.string(), " is a symbolic link; name the file that it leads to"));
    case std::filesystem::file_type::none:
      return absl::InvalidArgumentError(
          absl::StrCat("cannot look at ", path.string(), ": ", error.message()));
    default:
      return absl::InvalidArgumentError(
          absl::StrCat(path.string(), " exists and is not a regular file"));
  }
}

PartFile::PartFile(int fd, std::filesystem::path path)
    : fd_(fd), path_(std::move(path)), hash_(std::make_unique<Sha256>()) {}

PartFile::PartFile(PartFile&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      path_(std::move(other.path_)),
      size_(other.size_),
      hash_(std::move(other.hash_)) {}

PartFile::~PartFile() {
  if (fd_ < 0) return;
  // Remove an empty file, because the next attempt cannot use it.
  if (size_ == 0) unlink(path_.c_str());
  close(fd_);
}

absl::StatusOr<PartFile> PartFile::Open(const std::filesystem::path& path) {
  // O_NONBLOCK is needed because opening a FIFO would block.
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
  if (fd < 0) return FileError("open", path, errno);
  struct stat file_stat;
  if (fstat(fd, &file_stat) != 0 || !S_ISREG(file_stat.st_mode)) {
    close(fd);
    return absl::InternalError(absl::StrCat(path.string(), " is not a regular file"));
  }
  if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
    const int error = errno;
    close(fd);
    if (error != EWOULDBLOCK) return FileError("lock", path, error);
    return absl::AbortedError(absl::StrCat("another process is writing ", path.string()));
  }
  PartFile file(fd, path);
  if (absl::Status status = file.HashExisting(); !status.ok()) return status;
  return file;
}

absl::Status PartFile::HashExisting() {
  std::string buffer(1 << 20, '\0');
  for (;;) {
    const ssize_t got = read(fd_, buffer.data(), buffer.size());
    if (got < 0) return FileError("read", path_, errno);
    if (got == 0) return absl::OkStatus();
    hash_->Update(std::string_view(buffer.data(), got));
    size_ += got;
  }
}

absl::Status PartFile::Append(std::string_view bytes) {
  hash_->Update(bytes);
  while (!bytes.empty()) {
    const ssize_t written = write(fd_, bytes.data(), bytes.size());
    if (written < 0) return FileError("write", path_, errno);
    size_ += written;
    bytes.remove_prefix(written);
  }
  return absl::OkStatus();
}

absl::Status PartFile::Restart() {
  if (ftruncate(fd_, 0) != 0 || lseek(fd_, 0, SEEK_SET) != 0) {
    return FileError("empty", path_, errno);
  }
  size_ = 0;
  hash_ = std::make_unique<Sha256>();
  return absl::OkStatus();
}

absl::Status PartFile::Publish(uint64_t size, std::string_view sha256,
                               const std::filesystem::path& destination) {
  const std::string found = hash_->Finish();
  if (size_ != size || found != sha256) {
    unlink(path_.c_str());
    return absl::DataLossError(absl::StrCat(destination.string(), " has ", size_,
                                            " bytes with SHA-256 ", found, ", but the server has ",
                                            size, " bytes with ",
                                            absl::string_view(sha256.data(), sha256.size())));
  }
  if (absl::Status status = CheckReplaceable(destination); !status.ok()) return status;
  if (fsync(fd_) != 0) return FileError("write", path_, errno);
  if (rename(path_.c_str(), destination.c_str()) != 0) {
    return FileError("write", destination, errno);
  }
  return absl::OkStatus();
}

}  // namespace wan::client
