// How much host memory a video encoder takes: encodes frames of one size and prints by how much the
// process's peak has grown, in bytes for each pixel of a frame. One case a process, since a peak
// never falls. The number of processors decides how many threads the encoder uses:
//
//   taskset -c 0-7 wan_bench_encoder --kind mp4 --size 1280x704 --frames 121
//
// With --rate it measures instead whether the encoder keeps up with a decoder that hands over so
// many frames a second, and how long it goes on after the last one.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "engine/media/video_writer.h"
#include "engine/monitor/proc_stats.h"

namespace wan {
namespace {

struct Settings {
  std::string kind = "mp4";
  std::string size = "1280x704";
  int frames = 121;
  H264Options h264;
  double rate = 0;
};

// A moving picture with edges, slopes and grain, so that every tool of an encoder has work.
void Draw(int width, int height, int time, std::vector<uint8_t>& rgb24) {
  uint32_t grain = 12345u + static_cast<uint32_t>(time);
  size_t at = 0;
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      grain = grain * 1664525u + 1013904223u;
      const double wave = std::sin(0.02 * (x + 3 * time)) * std::cos(0.015 * (y - 2 * time));
      const int edge = ((x + 5 * time) / 97 + y / 61) % 2 * 40;
      const int value = static_cast<int>(110 + 60 * wave) + edge + static_cast<int>(grain >> 29);
      for (int c = 0; c < 3; ++c) {
        rgb24[at++] = static_cast<uint8_t>(std::clamp(value + 10 * c, 0, 255));
      }
    }
  }
}

// Hands frames over in chunks of four, as the autoencoder decodes them.
absl::Status MeasureSpeed(const Settings& settings, const std::vector<std::vector<uint8_t>>& frames,
                          VideoWriter& writer) {
  using Clock = std::chrono::steady_clock;
  constexpr size_t kChunk = 4;
  const Clock::time_point start = Clock::now();
  const auto due = [&](size_t frame) {
    const auto chunks = static_cast<double>((frame + kChunk - 1) / kChunk);
    return start + std::chrono::duration_cast<Clock::duration>(
                       std::chrono::duration<double>(chunks * kChunk / settings.rate));
  };
  for (size_t i = 0; i < frames.size(); ++i) {
    std::this_thread::sleep_until(due(i));
    if (absl::Status status = writer.Write(frames[i]); !status.ok()) return status;
  }
  const Clock::time_point taken = Clock::now();
  if (absl::Status status = writer.Finish(); !status.ok()) return status;
  const auto seconds = [](Clock::duration duration) {
    return std::chrono::duration<double>(duration).count();
  };
  std::printf(
      "%s crf %d, %s, %zu frames at %.0f a second: the last one taken %.3f s late, closed "
      "%.3f s after that\n",
      settings.h264.preset.c_str(), settings.h264.crf, settings.size.c_str(), frames.size(),
      settings.rate, seconds(taken - due(frames.size() - 1)), seconds(Clock::now() - taken));
  return absl::OkStatus();
}

absl::Status Run(const Settings& settings) {
  int width = 0;
  int height = 0;
  if (std::sscanf(settings.size.c_str(), "%dx%d", &width, &height) != 2) {
    return absl::InvalidArgumentError(absl::StrCat("'", settings.size, "' is not WxH"));
  }
  const bool lossless = settings.kind == "mkv";
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / absl::StrCat("wan_bench_encoder.", settings.kind);
  const auto pixels = static_cast<double>(width) * height;
  std::vector<uint8_t> frame(static_cast<size_t>(3 * width) * static_cast<size_t>(height));
  Draw(width, height, 0, frame);
  const auto before = ReadProcessMemory();
  if (!before.has_value()) return absl::UnavailableError("/proc/self/status cannot be read");
  absl::StatusOr<std::unique_ptr<VideoWriter>> writer =
      OpenVideoWriter(lossless ? OutputKind::kLosslessMkv : OutputKind::kMp4, path,
                      {width, height, 24, settings.h264});
  if (!writer.ok()) return writer.status();
  if (settings.rate > 0) {
    std::vector<std::vector<uint8_t>> frames(static_cast<size_t>(settings.frames), frame);
    for (int time = 0; time < settings.frames; ++time) {
      Draw(width, height, time, frames[static_cast<size_t>(time)]);
    }
    absl::Status status = MeasureSpeed(settings, frames, **writer);
    std::filesystem::remove(path);
    return status;
  }
  for (int time = 0; time < settings.frames; ++time) {
    Draw(width, height, time, frame);
    if (absl::Status status = (*writer)->Write(frame); !status.ok()) return status;
  }
  if (absl::Status status = (*writer)->Finish(); !status.ok()) return status;
  const uint64_t grown =
      ReadProcessMemory().value_or(*before).peak_resident_bytes - before->resident_bytes;
  std::filesystem::remove(path);
  std::printf("| %s | %s | %d | %u | %.0f | %.0f |\n", settings.kind.c_str(), settings.size.c_str(),
              settings.frames, std::thread::hardware_concurrency(),
              static_cast<double>(grown) / (1 << 20), static_cast<double>(grown) / pixels);
  return absl::OkStatus();
}

}  // namespace
}  // namespace wan

int main(int argc, char** argv) {
  wan::Settings settings;
  CLI::App app(
      "Measures the host memory of a video encoder; columns: kind, size, frames, "
      "processors, MiB, bytes a pixel");
  app.add_option("--kind", settings.kind, "mp4 or mkv")->check(CLI::IsMember({"mp4", "mkv"}));
  app.add_option("--size", settings.size, "WxH")->capture_default_str();
  app.add_option("--frames", settings.frames)->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--preset", settings.h264.preset, "of mp4")
      ->check(CLI::IsMember(
          std::vector<std::string>(wan::kH264Presets.begin(), wan::kH264Presets.end())))
      ->capture_default_str();
  app.add_option("--crf", settings.h264.crf, "of mp4")
      ->check(CLI::Range(wan::kBestH264Crf, wan::kWorstH264Crf))
      ->capture_default_str();
  app.add_option("--rate", settings.rate, "frames a second that a decoder hands over")
      ->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);
  const absl::Status status = wan::Run(settings);
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
