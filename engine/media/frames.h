// Video frames as numbers and as bytes.
#pragma once

#include <cstdint>
#include <span>

namespace wan {

// One frame from the decoder's floats to RGB24, by Wan2.2's rule: clamp to [-1, 1], then
// (x + 1) / 2 * 255 in fp32, the fraction cut off (not rounded).
// `planes` is [3, height, width], `rgb24` [height, width, 3]; both hold as many values.
// The same as a tensor expression: frame.clamp(-1, 1).add(1).div(2).mul(255).to(at::kByte).
void FloatToRgb24(std::span<const float> planes, std::span<uint8_t> rgb24);

}  // namespace wan
