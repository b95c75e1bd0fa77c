// A file that grows beside its destination and takes the destination's place once it is complete.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/sha256.h"

namespace wan::client {

// OK if `path` may become a file's new name: nothing, or a regular file, has it now. Otherwise
// INVALID_ARGUMENT says what is there.
absl::Status CheckReplaceable(const std::filesystem::path& path);

// For one thread. Holds a lock on the file, so that of all processes one at a time has it open.
class PartFile {
 public:
  // Opens or creates `path`. Keeps the bytes of an earlier attempt, which are read once for the
  // checksum. ABORTED if another process has the file open; INTERNAL if it cannot be opened or is
  // not a regular file.
  static absl::StatusOr<PartFile> Open(const std::filesystem::path& path);

  PartFile(PartFile&& other) noexcept;
  PartFile& operator=(PartFile&&) = delete;
  // Leaves the file for the next attempt unless it is empty.
  ~PartFile();

  uint64_t size() const { return size_; }

  absl::Status Append(std::string_view bytes);

  // Empties the file.
  absl::Status Restart();

  // Compares size and SHA-256 (lower-case hex) of the whole file, then renames it to `destination`,
  // which may be a regular file already. DATA_LOSS if they differ; the file is removed then, so
  // that the next attempt starts from the first byte. INVALID_ARGUMENT if something other than a
  // regular file has the destination's name; the file is kept then.
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
