// Notices that a file has changed, without reading it.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <string>

namespace wan::server {

// Identifies the version of the file that a path names. Links are followed, because Kubernetes
// updates a mounted Secret by exchanging a link to a folder.
class FileStamp {
 public:
  FileStamp() = default;
  // If `path` names no file, the stamp equals every other stamp of a missing file.
  static FileStamp Of(const std::string& path);

  friend bool operator==(const FileStamp&, const FileStamp&) = default;

 private:
  bool exists_ = false;
  dev_t device_ = 0;
  ino_t inode_ = 0;
  off_t size_ = 0;
  // Modification and change time in nanoseconds: tools can set the first one back.
  int64_t modified_ = 0;
  int64_t changed_ = 0;
};

}  // namespace wan::server
