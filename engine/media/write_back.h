// Puts a file on the disk while it is still being written.
#pragma once

#include <cstdint>
#include <string>

namespace wan {

// Asks the system again and again to begin writing what a growing file has so far, so that the
// fsync at its end finds little left to do. It makes nothing durable: an error of the disk is
// reported by that fsync. One thread at a time may use it.
class WriteBack {
 public:
  // Opens `path` beside the one who writes it. If that fails, the object does nothing.
  explicit WriteBack(const std::string& path);
  WriteBack(const WriteBack&) = delete;
  WriteBack& operator=(const WriteBack&) = delete;
  ~WriteBack();

  // Call it whenever the file has grown to `bytes`. What is changed in front of that later, as an
  // MP4's index is, the fsync writes. Does not wait for the disk, unless its queue of requests is
  // full.
  void UpTo(int64_t bytes);

  // The bytes that the system was asked to write.
  int64_t begun() const { return begun_; }

 private:
  const int fd_;
  int64_t begun_ = 0;
};

}  // namespace wan
