// Host resources of an open VideoWriter, for plans: threads and memory.
#pragma once

#include <cstdint>

namespace wan {

// Returns how many threads encode H.264 of this height: as many as libx264 starts by itself on 16
// processors. Each thread encodes one frame and sees only a part of the others, so the encoded
// bytes depend on this number, which therefore must not depend on the machine.
int H264Threads(int height);

// Returns the measured peak of bytes of one writer, for frames of `frame_pixels` pixels in `height`
// rows (docs/operate/memory.md). H.264 looks ahead and has a frame in work per thread; FFV1 holds
// one frame.
uint64_t WriterBytes(int64_t frame_pixels, int height);

}  // namespace wan
