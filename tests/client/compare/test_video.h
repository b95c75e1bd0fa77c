// Frames by a formula, and files of videos that show them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

namespace wan::fakes {

// Stripes and squares that move with `t`, plus noise of up to `grain` levels.
std::vector<uint8_t> TestFrame(int width, int height, int t, int grain);

struct TestVideo {
  int width = 64;  // pixels
  int height = 48;
  int frames = 5;
  int fps = 16;
  int grain = 0;
  // The first frame that has the grain.
  int grain_from = 0;
};

// Writes the video; the ending of `path` must be .mkv (lossless) or .mp4.
void WriteTestVideo(const std::filesystem::path& path, const TestVideo& video);

}  // namespace wan::fakes
