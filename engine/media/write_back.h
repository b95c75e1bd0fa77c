// Starts writing a file to the disk while it still grows.
#pragma once

#include <cstdint>
#include <string>

namespace wan {

// Repeatedly asks the system to begin writing a growing file, so that the fsync at its end finds
// little left to do. It makes nothing durable: an error of the disk is reported by that fsync. One
// thread at a time may use it.
class WriteBack {
 public:
  // Opens `path` with a descriptor of its own. If that fails, the object does nothing.
  explicit WriteBack(const std::string& path);
  WriteBack(const WriteBack&) = delete;
  WriteBack& operator=(const WriteBack&) = delete;
  ~WriteBack();

  // Call it whenever the file has grown to `bytes`. Bytes before that which change later, as an
  // MP4's index, are written by the fsync. Does not wait for the disk, unless its queue of requests
  // is full.
  void UpTo(int64_t bytes);

  // The bytes up to which the system was asked to write.
  int64_t begun() const { return begun_; }

 private:
  const int fd_;
  int64_t begun_ = 0;
};

}  // namespace wan
