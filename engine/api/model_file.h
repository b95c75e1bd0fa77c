// The files that a model is read from, and how to detect that one has changed.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace wan {

// Identifies a file's state without reading it. A replaced file has another inode; a file that was
// written in place has another time, unless that was set back.
struct FileVersion {
  uint64_t size_bytes = 0;
  int64_t modified_nanos = 0;  // since the epoch
  uint64_t inode = 0;

  // Returns the version of an open file, or the error of the system. Any thread may call it.
  static absl::StatusOr<FileVersion> Of(int descriptor);
  // Follows links. NOT_FOUND if there is no such file; FAILED_PRECONDITION if it is not a regular
  // file.
  static absl::StatusOr<FileVersion> Of(const std::string& path);

  friend bool operator==(const FileVersion&, const FileVersion&) = default;
};

// A file that was read.
struct ModelFile {
  // Path below the model's folder; for a LoRA "loras/NAME/FILE", or "loras/NAME/high/FILE" if it is
  // for one expert.
  std::string name;
  std::string path;     // path on this machine
  FileVersion version;  // version before the bytes were read

  friend bool operator==(const ModelFile&, const ModelFile&) = default;
};

}  // namespace wan
