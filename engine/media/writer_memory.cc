#include "engine/media/writer_memory.h"

#include <algorithm>

namespace wan {

uint64_t WriterBytes(int64_t frame_pixels, int processors) {
  constexpr int64_t kWriterBytes = int64_t{8} << 20;
  constexpr int64_t kPixelBytes = 168;
  constexpr int64_t kThreadPixelBytes = 12;
  constexpr int kMostThreads = 128;
  const int threads = std::clamp(processors + processors / 2, 1, kMostThreads);
  return static_cast<uint64_t>(kWriterBytes +
                               frame_pixels * (kPixelBytes + threads * kThreadPixelBytes));
}

}  // namespace wan
