#include "tests/client/compare/test_video.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "engine/media/video_writer.h"

namespace wan::fakes {
namespace {

uint32_t Mixed(uint32_t value) {
  value *= 2654435761u;
  value ^= value >> 15;
  value *= 2246822519u;
  return value ^ value >> 13;
}

}  // namespace

// frame_metrics_test.cc has figures of these very pixels.
std::vector<uint8_t> TestFrame(int width, int height, int t, int grain) {
  std::vector<uint8_t> rgb;
  rgb.reserve(static_cast<size_t>(width) * static_cast<size_t>(height) * 3);
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      for (int c = 0; c < 3; ++c) {
        int value = (x * (3 + c) + 2 * t) % 160 + (x / 24 + y / 16) % 2 * 60 + y % 17;
        const uint32_t place = static_cast<uint32_t>((y * width + x) * 3 + c + 7919 * t);
        if (grain > 0) value += static_cast<int>(Mixed(place) % (2 * grain + 1)) - grain;
        rgb.push_back(static_cast<uint8_t>(std::clamp(value, 0, 255)));
      }
    }
  }
  return rgb;
}

void WriteTestVideo(const std::filesystem::path& path, const TestVideo& video) {
  auto writer = OpenVideoWriter(
      path.extension() == ".mkv" ? OutputKind::kLosslessMkv : OutputKind::kMp4, path.string(),
      {.width = video.width, .height = video.height, .fps = video.fps});
  ASSERT_TRUE(writer.ok()) << writer.status();
  for (int t = 0; t < video.frames; ++t) {
    const int grain = t >= video.grain_from ? video.grain : 0;
    const absl::Status written = (*writer)->Write(TestFrame(video.width, video.height, t, grain));
    ASSERT_TRUE(written.ok()) << written;
  }
  const absl::Status finished = (*writer)->Finish();
  ASSERT_TRUE(finished.ok()) << finished;
}

}  // namespace wan::fakes
