// A file that reserves disk space. It is emptied when the disk is full, because SQLite must write a
// few pages to delete a job.
#pragma once

#include <cstdint>
#include <filesystem>

namespace wan::server {

// Not thread-safe.
class Ballast {
 public:
  // Does not touch the disk.
  explicit Ballast(std::filesystem::path file) : file_(std::move(file)) {}

  // Grows the file to kBytes, but by at most half of the free space. If the disk refuses, the file
  // stays as it is.
  void Fill() const;

  // Frees the file's space. Returns whether there was any.
  bool Release() const;

  // Deleting the longest jobs seen wrote less than 1 MiB.
  static constexpr uint64_t kBytes = uint64_t{4} << 20;

 private:
  const std::filesystem::path file_;
};

}  // namespace wan::server
