// Changes files so that the change survives a power cut. All functions are thread-safe.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace wan::server {

// Owns a file descriptor; a negative number means none.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor();
  int get() const { return fd_; }

 private:
  const int fd_;
};

// Returns the status for an errno (a full disk becomes RESOURCE_EXHAUSTED); `what` describes the
// operation. The reason is STORAGE_UNAVAILABLE if the disk is the cause.
absl::Status ErrnoError(const std::string& what, int error);

// Syncs a file, or the names in a folder, to the disk.
absl::Status SyncPath(const std::filesystem::path& path);

// Atomically replaces `path` by a file with the content `head` + `bytes`, and returns when the file
// is on the disk. Writes the file PATH.new first, so only one thread at a time may write a path.
absl::Status ReplaceFile(const std::filesystem::path& path, std::string_view head,
                         std::string_view bytes);

}  // namespace wan::server
