#include "engine/media/frames.h"

#include <algorithm>
#include <cstddef>

namespace wan {

void FloatToRgb24(std::span<const float> planes, std::span<uint8_t> rgb24) {
  const size_t pixels = planes.size() / 3;
  for (size_t channel = 0; channel < 3; ++channel) {
    const float* plane = planes.data() + channel * pixels;
    uint8_t* out = rgb24.data() + channel;
    for (size_t i = 0; i < pixels; ++i) {
      const float x = std::clamp(plane[i], -1.0f, 1.0f);
      out[3 * i] = static_cast<uint8_t>((x + 1) / 2 * 255);
    }
  }
}

}  // namespace wan
