// A file in memory, read on demand by the kernel.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

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

 private:
  MappedFile(std::string path, std::span<const std::byte> bytes);

  const std::string path_;
  const std::span<const std::byte> bytes_;
};

}  // namespace wan
