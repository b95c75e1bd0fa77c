// A file that is mapped into memory, so that a piece of it is a span; pieces are read into the
// caller's memory.
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

// Copies a piece of a file that is not trusted: MappedFile::Read.
using ReadPiece = std::function<absl::Status(std::span<const std::byte> part, std::byte* out)>;

// Immutable, and safe for use by several threads at once.
class MappedFile {
 public:
  // Opens and maps `path`. Otherwise the error of CheckPath (engine/api/file_problem.h), such as
  // FAILED_PRECONDITION if `path` is not a regular file.
  static absl::StatusOr<std::shared_ptr<const MappedFile>> Open(const std::string& path);

  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  const std::string& path() const { return path_; }
  // The file's bytes at its opening, to name pieces for Read. Do not read through it: if the file
  // was shortened since, that ends the process with SIGBUS.
  std::span<const std::byte> bytes() const { return bytes_; }
  // The file's state at its opening.
  const FileVersion& version() const { return version_; }

  // Copies `part`, which must lie inside bytes(), to `out` with system calls. This touches no page
  // of the mapping, which is cheaper for gigabytes. DATA_LOSS where somebody has shortened the
  // file.
  absl::Status Read(std::span<const std::byte> part, std::byte* out) const;

  // Returns a copy of `part`, which Read makes.
  absl::StatusOr<std::vector<std::byte>> Copy(std::span<const std::byte> part) const;

  // Returns a copy of the first bytes, at most as many as CheckNotForeign looks at.
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
