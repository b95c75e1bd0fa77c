// A file that only takes up space. It is removed on a full disk, so that jobs can be deleted:
// SQLite must write a few pages before it forgets a job.
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
  // of what is free. If the disk refuses that, the file stays as it is.
  void Fill() const;

  // Gives the file's bytes back to the disk. Returns whether there were any.
  bool Release() const;

  // More than the pages of the longest jobs seen, which were below 1 MiB.
  static constexpr uint64_t kBytes = uint64_t{4} << 20;

 private:
  const std::filesystem::path file_;
};

}  // namespace wan::server
