// How MP4 files are encoded.
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

namespace wan {

// The defaults were chosen by the figures in docs/design/media.md.
struct H264Options {
  // One of kH264Presets: faster ones take less time of the processors and more bytes for the same
  // quality.
  std::string preset = "veryfast";
  // Constant rate factor, kBestH264Crf to kWorstH264Crf: six more halve the bit rate, about.
  int crf = 15;
};

// The presets of libx264 that keep up with a GPU, the fastest first. Plans count the host memory of
// the last one (engine/media/writer_memory.h); slower ones take more.
inline constexpr std::array<const char*, 5> kH264Presets = {"ultrafast", "superfast", "veryfast",
                                                            "faster", "fast"};
inline constexpr int kBestH264Crf = 1;
inline constexpr int kWorstH264Crf = 51;

inline bool IsH264Preset(std::string_view name) {
  return std::find(kH264Presets.begin(), kH264Presets.end(), name) != kH264Presets.end();
}

}  // namespace wan
