// How MP4 files are encoded.
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

namespace wan {

// docs/design/media.md has the figures behind the defaults.
struct H264Options {
  // One of kH264Presets: faster ones take less CPU time and more bytes for the same quality.
  std::string preset = "veryfast";
  // Constant rate factor, kBestH264Crf to kWorstH264Crf; adding 6 halves the bit rate, roughly.
  int crf = 15;
};

// The libx264 presets that keep up with a GPU, fastest first. Plans count the host memory of the
// last one (engine/media/writer_memory.h); slower presets would need more.
inline constexpr std::array<const char*, 5> kH264Presets = {"ultrafast", "superfast", "veryfast",
                                                            "faster", "fast"};
inline constexpr int kBestH264Crf = 1;
inline constexpr int kWorstH264Crf = 51;

inline bool IsH264Preset(std::string_view name) {
  return std::find(kH264Presets.begin(), kH264Presets.end(), name) != kH264Presets.end();
}

}  // namespace wan
