// The number of threads and the host memory of an open VideoWriter, for planning.
#pragma once

#include <cstdint>

namespace wan {

// Returns how many threads encode H.264 for frames of this height. The number is libx264's default
// on 16 processors. The number must not depend on the machine, because the encoded bytes depend on
// it: each thread encodes a frame and sees only parts of other frames.
int H264Threads(int height);

// Returns the most bytes that a writer was measured to take, for frames of `frame_pixels` pixels in
// `height` rows (docs/operate/memory.md). H.264 looks ahead, and each thread has a frame in
// progress; FFV1 holds only one frame.
uint64_t WriterBytes(int64_t frame_pixels, int height);

}  // namespace wan
