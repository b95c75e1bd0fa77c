// What an open VideoWriter takes of the host: threads, and memory for plans.
#pragma once

#include <cstdint>

namespace wan {

// Returns how many threads encode H.264 of this height: as many as libx264 starts by itself on 16
// processors. Each works on a frame of its own and sees only so much of the others, so the encoded
// bytes depend on this number, and it must not depend on the machine.
int H264Threads(int height);

// Returns the most bytes that one writer of frames of `frame_pixels` pixels in `height` rows was
// measured to hold (docs/operate/memory.md has the measurement). H.264 looks ahead and has a frame
// in work for every thread; FFV1 holds the frame that it works on.
uint64_t WriterBytes(int64_t frame_pixels, int height);

}  // namespace wan
