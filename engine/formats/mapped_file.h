// A file in memory, read on demand by the kernel, or in pieces into memory of the caller.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace wan {

class MappedFile {
 public:
  // NOT_FOUND, PERMISSION_DENIED, or FAILED_PRECONDITION for what is no regular file.
  static absl::StatusOr<std::shared_ptr<const MappedFile>> Open(const std::string& path);

  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  const std::string& path() const { return path_; }
  std::span<const std::byte> bytes() const { return bytes_; }

  // out := `part`, a part of bytes(), by way of the file: no page of the mapping is touched, which
  // for gigabytes is cheaper, and a file that has become shorter is DATA_LOSS rather than SIGBUS.
  // For any thread.
  absl::Status Read(std::span<const std::byte> part, std::byte* out) const;

 private:
  MappedFile(std::string path, int descriptor, std::span<const std::byte> bytes);

  const std::string path_;
  const int descriptor_;
  const std::span<const std::byte> bytes_;
};

}  // namespace wan
