// Limits of a request's numbers and texts that are the same for all models. Planning refuses values
// outside of these limits. The server names the limits when it refuses a value itself.
#pragma once

#include <cstddef>

namespace wan {

// The maximum of bytes in the prompt, and in the negative prompt: far more than 512 tokens need.
// This limits how long it takes to clean a text.
inline constexpr size_t kMaxPromptBytes = size_t{64} << 10;
// The maximum number of pixels along one side. At this size the decoder's largest activations have
// 12.9e9 elements. Operators support more than 2^31 elements; they work in pieces if a library does
// not (engine/ops/convolution.h). tests/gpu/large_sizes_gpu_test.cc verifies this.
inline constexpr int kMaxSide = 4096;
// The number of positions per axis in the rotary embedding's table (upstream's rope_params(1024,
// ...)).
inline constexpr int kMaxLatentFrames = 1024;
// The maximum number of frames per second of the video file; the least is 1.
inline constexpr int kMaxFps = 120;
// The largest guidance scale; the least is 0.
inline constexpr double kMaxGuidanceScale = 100;
// The maximum number of denoising steps; the fewest is 1, except that 0 steps decode a request's
// latents.
inline constexpr int kMaxFlowSteps = 1000;

}  // namespace wan
