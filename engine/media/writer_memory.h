// The host memory that an open VideoWriter holds, for plans.
#pragma once

#include <cstdint>

namespace wan {

// Returns the most bytes that one writer of frames of `frame_pixels` pixels was measured to hold on
// a machine of `processors` (docs/memory.md has the measurement). H.264 looks ahead and has frames
// in work for every thread, of which it starts three for two processors; FFV1 holds the frame that
// it works on.
uint64_t WriterBytes(int64_t frame_pixels, int processors);

}  // namespace wan
