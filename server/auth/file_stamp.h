// Detects that a file has changed, without reading it.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <string>

namespace wan::server {

// Identifies one version of a file. Follows symbolic links, because Kubernetes updates a mounted
// Secret by replacing a link to a folder.
class FileStamp {
 public:
  FileStamp() = default;
  // All stamps of missing files are equal.
  static FileStamp Of(const std::string& path);

  friend bool operator==(const FileStamp&, const FileStamp&) = default;

 private:
  bool exists_ = false;
  dev_t device_ = 0;
  ino_t inode_ = 0;
  off_t size_ = 0;
  // Modification and change time in nanoseconds; both are needed, because tools can set back the
  // modification time.
  int64_t modified_ = 0;
  int64_t changed_ = 0;
};

}  // namespace wan::server
