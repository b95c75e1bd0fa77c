#include "engine/api/model_file.h"

#include <sys/stat.h>

#include <cerrno>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace wan {
namespace {

FileVersion VersionOf(const struct stat& facts) {
  return {static_cast<uint64_t>(facts.st_size),
          int64_t{facts.st_mtim.tv_sec} * 1'000'000'000 + facts.st_mtim.tv_nsec,
          static_cast<uint64_t>(facts.st_ino)};
}

}  // namespace

absl::StatusOr<FileVersion> FileVersion::Of(int descriptor) {
  struct stat facts {};
  if (::fstat(descriptor, &facts) != 0) return absl::ErrnoToStatus(errno, "fstat");
  return VersionOf(facts);
}

absl::StatusOr<FileVersion> FileVersion::Of(const std::string& path) {
  struct stat facts {};
  if (::stat(path.c_str(), &facts) != 0) return absl::ErrnoToStatus(errno, path);
  if (!S_ISREG(facts.st_mode)) {
    return absl::FailedPreconditionError(absl::StrCat(path, " is not a regular file"));
  }
  return VersionOf(facts);
}

}  // namespace wan
