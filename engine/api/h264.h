// The settings with which MP4 files are encoded.
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

namespace wan {

// docs/design/media.md has the measurements on which the defaults are based.
struct H264Options {
  // One of kH264Presets. For the same quality, a faster preset takes less CPU time and makes a
  // larger file.
  std::string preset = "veryfast";
  // The constant rate factor, from kBestH264Crf to kWorstH264Crf. An increase by 6 roughly halves
  // the bit rate.
  int crf = 15;
};

// The libx264 presets that are fast enough for a GPU, fastest first. Plans count the host memory of
// the last preset (engine/media/writer_memory.h); slower presets would need more.
inline constexpr std::array<const char*, 5> kH264Presets = {"ultrafast", "superfast", "veryfast",
                                                            "faster", "fast"};
inline constexpr int kBestH264Crf = 1;
inline constexpr int kWorstH264Crf = 51;

inline bool IsH264Preset(std::string_view name) {
  return std::find(kH264Presets.begin(), kH264Presets.end(), name) != kH264Presets.end();
}

}  // namespace wan
