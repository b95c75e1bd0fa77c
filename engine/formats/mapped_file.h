// A file that is mapped into memory. Spans refer to pieces of the file, and Read copies the pieces.
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

// A function that copies a piece of an untrusted file, as MappedFile::Read does.
using ReadPiece = std::function<absl::Status(std::span<const std::byte> part, std::byte* out)>;

// Immutable; several threads may use an object at the same time.
class MappedFile {
 public:
  // Opens the file at `path` and maps it. If that fails, returns the error of CheckPath
  // (engine/api/file_problem.h), for example FAILED_PRECONDITION if `path` is not a regular file.
  static absl::StatusOr<std::shared_ptr<const MappedFile>> Open(const std::string& path);

  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  const std::string& path() const { return path_; }
  // The bytes that the file had when it was opened. Use this span only to select pieces for Read.
  // Do not access the bytes: access raises SIGBUS if somebody has truncated the file since.
  std::span<const std::byte> bytes() const { return bytes_; }
  // Returns the version that the file had when it was opened.
  const FileVersion& version() const { return version_; }

  // Copies `part`, which must lie inside bytes(), to `out` with system calls. Read touches no page
  // of the mapping, which is faster for gigabytes. DATA_LOSS if somebody has truncated the file.
  absl::Status Read(std::span<const std::byte> part, std::byte* out) const;

  // Returns a copy of `part`, made by Read.
  absl::StatusOr<std::vector<std::byte>> Copy(std::span<const std::byte> part) const;

  // Returns a copy of the file's first bytes, as many as CheckNotForeign examines.
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
