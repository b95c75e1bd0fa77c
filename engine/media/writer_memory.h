// Threads and host memory of an open VideoWriter, for planning.
#pragma once

#include <cstdint>

namespace wan {

// Returns how many threads encode H.264 of this height: libx264's default on 16 processors. The
// encoded bytes depend on this number, because each thread encodes a frame and sees only parts of
// others; so it must not depend on the machine.
int H264Threads(int height);

// Returns the measured peak bytes of one writer for frames of `frame_pixels` pixels in `height`
// rows (docs/operate/memory.md). H.264 looks ahead and has one frame in progress per thread; FFV1
// holds one frame.
uint64_t WriterBytes(int64_t frame_pixels, int height);

}  // namespace wan
