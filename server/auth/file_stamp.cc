#include "server/auth/file_stamp.h"

namespace wan::server {
namespace {

int64_t Nanoseconds(const timespec& time) {
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

}  // namespace

FileStamp FileStamp::Of(const std::string& path) {
  FileStamp stamp;
  struct stat facts = {};
  if (stat(path.c_str(), &facts) != 0) return stamp;
  stamp.exists_ = true;
  stamp.device_ = facts.st_dev;
  stamp.inode_ = facts.st_ino;
  stamp.size_ = facts.st_size;
  stamp.modified_ = Nanoseconds(facts.st_mtim);
  stamp.changed_ = Nanoseconds(facts.st_ctim);
  return stamp;
}

}  // namespace wan::server
