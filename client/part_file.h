// A partial file that gets the name of its destination when it is complete.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/sha256.h"

namespace wan::client {

// Returns OK if `path` does not exist or is a regular file; otherwise INVALID_ARGUMENT, which says
// what is there.
absl::Status CheckReplaceable(const std::filesystem::path& path);

// Not thread-safe. The object locks the file, so that only one process at a time has it open.
class PartFile {
 public:
  // Opens the file at `path`, or creates it. Keeps the bytes that an earlier attempt has written,
  // and reads them for the checksum. Fails with ABORTED if another process has the file open;
  // INTERNAL if the file cannot be opened or is not a regular file.
  static absl::StatusOr<PartFile> Open(const std::filesystem::path& path);

  PartFile(PartFile&& other) noexcept;
  PartFile& operator=(PartFile&&) = delete;
  // Keeps the file for the next attempt, unless it is empty.
  ~PartFile();

  uint64_t size() const { return size_; }

  absl::Status Append(std::string_view bytes);

  // Empties the file.
  absl::Status Restart();

  // Checks size and SHA-256 (lower-case hex) of the whole file, then renames it to `destination`,
  // replacing a regular file. Fails with DATA_LOSS if size or SHA-256 differ; then the file is
  // removed, so that the next attempt starts from the beginning. Fails with INVALID_ARGUMENT if the
  // destination exists and is not a regular file; then the partial file is kept.
  absl::Status Publish(uint64_t size, std::string_view sha256,
                       const std::filesystem::path& destination);

 private:
  PartFile(int fd, std::filesystem::path path);
  absl::Status HashExisting();

  int fd_;
  std::filesystem::path path_;
  uint64_t size_ = 0;
  std::unique_ptr<Sha256> hash_;
};

}  // namespace wan::client
