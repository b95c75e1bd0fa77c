// Makes the system start writing a file to disk while the file still grows.
#pragma once

#include <cstdint>
#include <string>

namespace wan {

// Again and again, it asks the system to begin writing a file that grows, so that the fsync at the
// end has little left to do. Only that fsync makes the bytes durable, and it also reports errors of
// the disk. Only one thread at a time may use the object.
class WriteBack {
 public:
  // Opens `path` once more, with a descriptor of its own. If the file cannot be opened, the object
  // does nothing.
  explicit WriteBack(const std::string& path);
  WriteBack(const WriteBack&) = delete;
  WriteBack& operator=(const WriteBack&) = delete;
  ~WriteBack();

  // Call it each time the file has grown, with its present size `bytes`. Bytes that change later,
  // such as the index of an MP4 file, are written by the fsync. The call does not wait for the
  // disk, unless the system's queue of requests is full.
  void UpTo(int64_t bytes);

  // Returns how many bytes the system was asked to write so far.
  int64_t begun() const { return begun_; }

 private:
  const int fd_;
  int64_t begun_ = 0;
};

}  // namespace wan
