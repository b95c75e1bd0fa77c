// Starts writing a file to disk while it is still growing.
#pragma once

#include <cstdint>
#include <string>

namespace wan {

// Repeatedly asks the system to begin writing a growing file, so that the fsync at its end finds
// little left to do. Nothing is durable before that fsync, which also reports disk errors. One
// thread at a time may use it.
class WriteBack {
 public:
  // Opens `path` again with its own descriptor. If that fails, the object does nothing.
  explicit WriteBack(const std::string& path);
  WriteBack(const WriteBack&) = delete;
  WriteBack& operator=(const WriteBack&) = delete;
  ~WriteBack();

  // Call it whenever the file has grown to `bytes`. The fsync writes bytes that change later, such
  // as an MP4's index. Does not wait for the disk unless the request queue is full.
  void UpTo(int64_t bytes);

  // How many bytes the system was asked to write so far.
  int64_t begun() const { return begun_; }

 private:
  const int fd_;
  int64_t begun_ = 0;
};

}  // namespace wan
