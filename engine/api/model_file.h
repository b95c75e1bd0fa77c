// The files from which a model is read, and their versions, which show that a file has changed.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace wan {

// Identifies the state of a file, without reading its bytes. If a file replaced another file, the
// inode is different. If somebody overwrote the file in place, the time is different, unless
// somebody also set the time back.
struct FileVersion {
  uint64_t size_bytes = 0;
  int64_t modified_nanos = 0;  // time of the last change, since the epoch
  uint64_t inode = 0;

  // Returns the version of an open file, or the system's error. Any thread may call the function.
  static absl::StatusOr<FileVersion> Of(int descriptor);
  // Returns the version of the file at `path`; follows links. NOT_FOUND if the file does not exist;
  // FAILED_PRECONDITION if it is not a regular file.
  static absl::StatusOr<FileVersion> Of(const std::string& path);

  friend bool operator==(const FileVersion&, const FileVersion&) = default;
};

// Which jobs use a file of a model.
enum class FileUse {
  kEveryJob,
  kVae,          // jobs that encode an image or decode with Decoder::kFull
  kTinyDecoder,  // jobs that decode with Decoder::kTiny
  kStepRatios,   // jobs of Quality::kFast
};

// A file that was read when the model was loaded.
struct ModelFile {
  // The path below the model's folder. For a LoRA it is "loras/NAME/FILE", or
  // "loras/NAME/high/FILE" if the file is for one expert.
  std::string name;
  std::string path;     // the full path on this machine
  FileVersion version;  // the version that the file had before its bytes were read
  FileUse use = FileUse::kEveryJob;

  friend bool operator==(const ModelFile&, const ModelFile&) = default;
};

}  // namespace wan
