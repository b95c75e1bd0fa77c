// A file that is mapped into memory: spans name its pieces, and Read copies them.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/api/model_file.h"

namespace wan {

// Copies a piece of an untrusted file, as MappedFile::Read does.
using ReadPiece = std::function<absl::Status(std::span<const std::byte> part, std::byte* out)>;

// Immutable, and safe for use by several threads at once.
class MappedFile {
 public:
  // Opens and maps `path`. On failure returns the error of CheckPath (engine/api/file_problem.h),
  // for example FAILED_PRECONDITION if `path` is not a regular file.
  static absl::StatusOr<std::shared_ptr<const MappedFile>> Open(const std::string& path);

  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  const std::string& path() const { return path_; }
  // The file's bytes when it was opened, to name pieces for Read. Do not access them: that raises
  // SIGBUS if the file was truncated since.
  std::span<const std::byte> bytes() const { return bytes_; }
  // The file's version when it was opened.
  const FileVersion& version() const { return version_; }

  // Copies `part`, which must lie inside bytes(), to `out` with system calls. This touches no page
  // of the mapping, which is cheaper for gigabytes. DATA_LOSS if the file was truncated.
  absl::Status Read(std::span<const std::byte> part, std::byte* out) const;

  // Returns a copy of `part`, made by Read.
  absl::StatusOr<std::vector<std::byte>> Copy(std::span<const std::byte> part) const;

  // Returns a copy of the first bytes, as many as CheckNotForeign looks at.
  absl::StatusOr<std::vector<std::byte>> CopyBeginning() const;

 private:
  MappedFile(std::string path, int descriptor, const FileVersion& version,
             std::span<const std::byte> bytes);

  const std::string path_;
  const int descriptor_;
  const FileVersion version_;
  const std::span<const std::byte> bytes_;
};

}  // namespace wan
