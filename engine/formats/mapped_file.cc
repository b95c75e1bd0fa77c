#include "engine/formats/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/api/file_problem.h"
#include "engine/formats/file_errors.h"

namespace wan {

absl::StatusOr<std::shared_ptr<const MappedFile>> MappedFile::Open(const std::string& path) {
  // With O_NONBLOCK, opening a pipe fails; without it, the call would wait for somebody who writes
  // to the pipe.
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) {
    const int open_errno = errno;
    if (absl::Status why = CheckPath(path, PathKind::kFile); !why.ok()) return why;
    return absl::ErrnoToStatus(open_errno, absl::StrCat(path, ": cannot be opened"));
  }
  struct stat status {};
  const absl::StatusOr<FileVersion> version = FileVersion::Of(descriptor);
  const bool regular = version.ok() && ::fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode);
  const size_t size = regular ? static_cast<size_t>(version->size_bytes) : 0;
  // mmap refuses an empty file, but here an empty file is not an error.
  void* const address =
      size > 0 ? ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor, 0) : nullptr;
  const int map_errno = errno;
  if (!regular || address == MAP_FAILED) ::close(descriptor);
  if (!regular) {
    if (absl::Status why = CheckPath(path, PathKind::kFile); !why.ok()) return why;
    return absl::FailedPreconditionError(absl::StrCat(path, ": is not a regular file"));
  }
  if (address == MAP_FAILED) {
    return absl::ErrnoToStatus(map_errno, absl::StrCat(path, ": cannot map"));
  }
  return std::shared_ptr<const MappedFile>(
      new MappedFile(path, descriptor, *version, {static_cast<const std::byte*>(address), size}));
}

MappedFile::MappedFile(std::string path, int descriptor, const FileVersion& version,
                       std::span<const std::byte> bytes)
    : path_(std::move(path)), descriptor_(descriptor), version_(version), bytes_(bytes) {}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
  ::close(descriptor_);
}

absl::Status MappedFile::Read(std::span<const std::byte> part, std::byte* out) const {
  const auto begin = static_cast<off_t>(part.data() - bytes_.data());
  size_t done = 0;
  while (done < part.size()) {
    const off_t at = begin + static_cast<off_t>(done);
    const ssize_t read = ::pread(descriptor_, out + done, part.size() - done, at);
    if (read < 0 && errno == EINTR) continue;
    if (read < 0) {
      return Damaged(path_, absl::StrCat("cannot read at byte ", at, ": ", std::strerror(errno)));
    }
    if (read == 0) {
      return Damaged(path_, absl::StrCat("ends at byte ", at, ", was ", bytes_.size(),
                                         " bytes long when it was opened"));
    }
    done += static_cast<size_t>(read);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::byte>> MappedFile::Copy(std::span<const std::byte> part) const {
  std::vector<std::byte> copy(part.size());
  if (absl::Status status = Read(part, copy.data()); !status.ok()) return status;
  return copy;
}

absl::StatusOr<std::vector<std::byte>> MappedFile::CopyBeginning() const {
  return Copy(bytes_.first(std::min(bytes_.size(), kForeignContentBytes)));
}

}  // namespace wan
