#include "engine/media/write_back.h"

#include <fcntl.h>
#include <unistd.h>

namespace wan {
namespace {

// The number of bytes for which each request asks. The number is large enough for efficient writes,
// and so small that little is left for the fsync.
constexpr int64_t kPieceBytes = int64_t{4} << 20;

}  // namespace

WriteBack::WriteBack(const std::string& path) : fd_(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}

WriteBack::~WriteBack() {
  if (fd_ >= 0) close(fd_);
}

void WriteBack::UpTo(int64_t bytes) {
  if (fd_ < 0 || bytes - begun_ < kPieceBytes) return;
  sync_file_range(fd_, begun_, bytes - begun_, SYNC_FILE_RANGE_WRITE);
  begun_ = bytes;
}

}  // namespace wan
