#include "engine/media/writer_memory.h"

#include <algorithm>

namespace wan {

int H264Threads(int height) {
  constexpr int kBlockRows = 16;
  constexpr int kMostThreads = 24;
  // If a thread had fewer than two rows of blocks, the threads would only wait for each other.
  const int rows = (height + kBlockRows - 1) / kBlockRows;
  return std::clamp(rows / 2, 1, kMostThreads);
}

uint64_t WriterBytes(int64_t frame_pixels, int height) {
  constexpr int64_t kWriterBytes = int64_t{8} << 20;
  constexpr int64_t kPixelBytes = 168;
  constexpr int64_t kThreadPixelBytes = 12;
  return static_cast<uint64_t>(
      kWriterBytes + frame_pixels * (kPixelBytes + H264Threads(height) * kThreadPixelBytes));
}

}  // namespace wan
