// A file that is mapped into memory, where the kernel reads pages on demand; pieces of it can also
// be read into the caller's memory.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/api/model_file.h"

namespace wan {

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
  std::span<const std::byte> bytes() const { return bytes_; }
  // As it was when it was opened.
  const FileVersion& version() const { return version_; }

  // Copies `part`, which must lie inside bytes(), to `out` with system calls. This touches no page
  // of the mapping, which is cheaper for gigabytes; and where somebody has shortened the file it
  // returns DATA_LOSS, while a look into the mapping would end the process with SIGBUS.
  absl::Status Read(std::span<const std::byte> part, std::byte* out) const;

 private:
  MappedFile(std::string path, int descriptor, const FileVersion& version,
             std::span<const std::byte> bytes);

  const std::string path_;
  const int descriptor_;
  const FileVersion version_;
  const std::span<const std::byte> bytes_;
};

}  // namespace wan
