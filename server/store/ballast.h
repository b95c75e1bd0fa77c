// A file that only takes up space, so that there is some when a full disk refuses what would free
// more: SQLite must write a few pages before it forgets a job.
#pragma once

#include <cstdint>
#include <filesystem>

namespace wan::server {

// Not thread-safe.
class Ballast {
 public:
  // Does not touch the disk.
  explicit Ballast(std::filesystem::path file) : file_(std::move(file)) {}

  // Makes the file kBytes large; on a disk that has less than twice as much free, it grows by half
  // of what is free. What the disk refuses stays as it is.
  void Fill() const;

  // Gives the file's bytes back to the disk. Returns whether there were any.
  bool Release() const;

  // More than the pages of the longest jobs that were seen, which stay below 1 MiB.
  static constexpr uint64_t kBytes = uint64_t{4} << 20;

 private:
  const std::filesystem::path file_;
};

}  // namespace wan::server
