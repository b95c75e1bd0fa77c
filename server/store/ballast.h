// A file that reserves disk space for the removal of jobs. When the disk is full, the file is
// emptied, because SQLite must write a few pages to delete a job.
#pragma once

#include <cstdint>
#include <filesystem>

namespace wan::server {

// Not thread-safe.
class Ballast {
 public:
  // The constructor does not access the disk.
  explicit Ballast(std::filesystem::path file) : file_(std::move(file)) {}

  // Grows the file to kBytes, but by at most half of the free space. If the disk refuses the
  // growth, the file stays as it is.
  void Fill() const;

  // Frees the file's space. Returns whether the file had space to free.
  bool Release() const;

  // This space is enough: deleting the longest jobs seen so far wrote less than 1 MiB.
  static constexpr uint64_t kBytes = uint64_t{4} << 20;

 private:
  const std::filesystem::path file_;
};

}  // namespace wan::server
