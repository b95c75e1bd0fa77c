// Bounds of the numbers and texts of a request that hold for every model. Planning refuses what
// lies outside, and a server names them where it refuses a value itself.
#pragma once

#include <cstddef>

namespace wan {

// Bytes of the prompt and of the negative prompt: far more than 512 tokens need. It bounds the cost
// of cleaning any text.
inline constexpr size_t kMaxPromptBytes = size_t{64} << 10;
// Pixels of a side. The decoder's largest activations have 12.9e9 elements there; operators take
// more than 2^31 of them, in pieces where a library does not (engine/ops/convolution.h), which
// tests/gpu/large_sizes_gpu_test.cc holds against parts.
inline constexpr int kMaxSide = 4096;
// Positions of the rotary embedding's table, per axis (upstream's rope_params(1024, ...)).
inline constexpr int kMaxLatentFrames = 1024;
// Frames per second of the video file, from 1 on.
inline constexpr int kMaxFps = 120;
// Denoising steps, from 1 on.
inline constexpr int kMaxFlowSteps = 1000;

}  // namespace wan
