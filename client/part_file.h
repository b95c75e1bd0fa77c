// A file that grows beside its destination and takes its place when it is complete.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/sha256.h"

namespace wan::client {

// One at a time for each path, across processes: it holds a lock. One thread.
class PartFile {
 public:
  // Opens or creates `path`. What an earlier attempt left in it is kept, and read once for the
  // checksum. ABORTED if another process has it open.
  static absl::StatusOr<PartFile> Open(const std::filesystem::path& path);

  PartFile(PartFile&& other) noexcept;
  PartFile& operator=(PartFile&&) = delete;
  // Leaves the file for the next attempt, unless it is empty.
  ~PartFile();

  uint64_t size() const { return size_; }

  absl::Status Append(std::string_view bytes);

  // Empties it.
  absl::Status Restart();

  // Checks size and SHA-256 (lower-case hex) of the whole, then renames it to `destination`, which
  // may exist. DATA_LOSS if they differ; the file is removed then, so that the next attempt starts
  // afresh.
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
