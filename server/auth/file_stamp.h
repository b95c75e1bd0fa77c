// Notices that a file has changed, without reading it.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <string>

namespace wan::server {

// Which version of which file a path names. Links are followed, so that the exchange of a link to a
// folder, which is how Kubernetes updates a mounted Secret, is a change too.
class FileStamp {
 public:
  FileStamp() = default;
  // Of no file at all if `path` names none.
  static FileStamp Of(const std::string& path);

  friend bool operator==(const FileStamp&, const FileStamp&) = default;

 private:
  bool exists_ = false;
  dev_t device_ = 0;
  ino_t inode_ = 0;
  off_t size_ = 0;
  // Both times, in nanoseconds: tools can set the first one back.
  int64_t modified_ = 0;
  int64_t changed_ = 0;
};

}  // namespace wan::server
