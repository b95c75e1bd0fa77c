// Bounds of a request's numbers and texts that hold for all models. Planning refuses values
// outside, and the server names the bounds when it refuses a value itself.
#pragma once

#include <cstddef>

namespace wan {

// Bytes of the prompt and of the negative prompt: far more than 512 tokens need. It bounds the cost
// of cleaning a text.
inline constexpr size_t kMaxPromptBytes = size_t{64} << 10;
// Pixels per side. At this size the decoder's largest activations have 12.9e9 elements. Operators
// support more than 2^31, in pieces if a library does not (engine/ops/convolution.h), as
// tests/gpu/large_sizes_gpu_test.cc verifies.
inline constexpr int kMaxSide = 4096;
// Positions per axis in the rotary embedding's table (upstream's rope_params(1024, ...)).
inline constexpr int kMaxLatentFrames = 1024;
// Frames per second of the video file; at least 1.
inline constexpr int kMaxFps = 120;
// Denoising steps; at least 1.
inline constexpr int kMaxFlowSteps = 1000;

}  // namespace wan
