// Measures a video encoder on generated pictures: whether it keeps up with a frame rate, how long
// it works after the last frame, and how large and how good the file is.
//
//   wan_bench encoder --preset fast --preset veryfast --crf 15 --content clean --content noise
//
// With --memory the command measures host memory instead. It prints by how much the encoder raises
// the process's peak, in bytes per pixel of a frame. The peak of a process never falls, so each
// process measures only one case. The number of processors decides how many threads an encoder
// uses, so limit it:
//
//   taskset -c 0-7 wan_bench encoder --memory --kind mp4 --shape 1280x704x121
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "benchmarks/bench_flags.h"
#include "benchmarks/commands.h"
#include "benchmarks/test_pictures.h"
#include "engine/media/video_reader.h"
#include "engine/media/video_writer.h"
#include "engine/monitor/proc_stats.h"

namespace wan {
namespace {

struct EncoderSettings {
  std::string kind = "mp4";
  std::string shape = BenchShape().Name();
  std::vector<std::string> contents = {"clean", "grain", "noise"};
  std::vector<std::string> presets = {H264Options().preset};
  std::vector<int> crfs = {H264Options().crf};
  double rate = 40;
  bool memory = false;
};

// Frames of one kind of content, as they are before encoding.
using Frames = std::vector<std::vector<uint8_t>>;

class EncoderBench {
 public:
  EncoderBench(const EncoderSettings& settings, const BenchShape& shape, Session& session)
      : settings_(settings),
        width_(static_cast<int>(shape.width)),
        height_(static_cast<int>(shape.height)),
        frames_(static_cast<int>(shape.frames)),
        path_(std::filesystem::temp_directory_path() /
              absl::StrCat("wan_bench_encoder_", ::getpid(), ".", settings.kind)),
        session_(session) {}
  ~EncoderBench() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  EncoderBench(const EncoderBench&) = delete;
  EncoderBench& operator=(const EncoderBench&) = delete;

  absl::Status Speed() {
    for (const std::string& content : settings_.contents) {
      Frames frames(static_cast<size_t>(frames_), Blank());
      for (int time = 0; time < frames_; ++time) {
        Draw(content, time, frames[static_cast<size_t>(time)]);
      }
      for (const std::string& preset : settings_.presets) {
        for (const int crf : settings_.crfs) {
          absl::Status status = Speed(content, frames, {.preset = preset, .crf = crf});
          if (!status.ok()) return status;
        }
      }
    }
    return absl::OkStatus();
  }

  absl::Status Memory() {
    const std::string& content = settings_.contents.front();
    std::vector<uint8_t> frame = Blank();
    const auto before = ReadProcessMemory();
    if (!before.has_value()) return absl::UnavailableError("/proc/self/status cannot be read");
    const H264Options h264{.preset = settings_.presets.front(), .crf = settings_.crfs.front()};
    auto writer = Open(h264);
    if (!writer.ok()) return writer.status();
    for (int time = 0; time < frames_; ++time) {
      Draw(content, time, frame);
      if (absl::Status status = (*writer)->Write(frame); !status.ok()) return status;
    }
    if (absl::Status status = (*writer)->Finish(); !status.ok()) return status;
    const auto grown = static_cast<double>(
        ReadProcessMemory().value_or(*before).peak_resident_bytes - before->resident_bytes);
    BenchRow row{.name = absl::StrCat(Name(content, h264), ", memory")};
    row.figures = {{"processors", static_cast<int64_t>(std::thread::hardware_concurrency())},
                   {"mib", grown / (1 << 20)},
                   {"bytes_a_pixel", grown / (static_cast<double>(width_) * height_)}};
    return session_.Add(std::move(row));
  }

 private:
  using Clock = std::chrono::steady_clock;

  static double Seconds(Clock::duration duration) {
    return std::chrono::duration<double>(duration).count();
  }

  std::vector<uint8_t> Blank() const {
    return std::vector<uint8_t>(static_cast<size_t>(3 * width_) * static_cast<size_t>(height_));
  }
  void Draw(const std::string& content, int time, std::vector<uint8_t>& frame) const {
    DrawPicture(*ParsePictureKind(content), width_, height_, time, frame);
  }
  absl::StatusOr<std::unique_ptr<VideoWriter>> Open(const H264Options& h264) const {
    const OutputKind kind = settings_.kind == "mkv" ? OutputKind::kLosslessMkv : OutputKind::kMp4;
    return OpenVideoWriter(kind, path_, {width_, height_, 24, h264, frames_});
  }
  std::string Name(const std::string& content, const H264Options& h264) const {
    std::string name = absl::StrCat(settings_.kind, " ", settings_.shape, " ", content);
    if (settings_.kind == "mp4") absl::StrAppend(&name, ", ", h264.preset, " crf ", h264.crf);
    return name;
  }

  // Passes frames to the encoder in chunks of four, as the autoencoder decodes them.
  absl::Status Speed(const std::string& content, const Frames& frames, const H264Options& h264) {
    constexpr size_t kChunk = 4;
    auto writer = Open(h264);
    if (!writer.ok()) return writer.status();
    const Clock::time_point start = Clock::now();
    const auto due = [&](size_t frame) {
      const auto chunks = static_cast<double>((frame + kChunk - 1) / kChunk);
      return start + std::chrono::duration_cast<Clock::duration>(
                         std::chrono::duration<double>(chunks * kChunk / settings_.rate));
    };
    for (size_t i = 0; i < frames.size(); ++i) {
      std::this_thread::sleep_until(due(i));
      if (absl::Status status = (*writer)->Write(frames[i]); !status.ok()) return status;
    }
    const Clock::time_point taken = Clock::now();
    if (absl::Status status = (*writer)->Finish(); !status.ok()) return status;
    const double after = Seconds(Clock::now() - taken);
    BenchRow row{.name = Name(content, h264), .timing = Timing{after, after, after, 1}};
    row.figures = {{"ends_after_seconds", after},
                   {"late_seconds", Seconds(taken - due(frames.size() - 1))},
                   {"megabytes", static_cast<double>(std::filesystem::file_size(path_)) / 1e6}};
    if (absl::Status status = AddLikeness(frames, row); !status.ok()) return status;
    row.figures.push_back(
        {"processors", static_cast<int64_t>(std::thread::hardware_concurrency())});
    return session_.Add(std::move(row));
  }

  absl::Status AddLikeness(const Frames& frames, BenchRow& row) const {
    const absl::StatusOr<VideoClip> clip = ReadVideo(path_);
    if (!clip.ok()) return clip.status();
    if (clip->frames != frames_ || clip->width != width_ || clip->height != height_) {
      return absl::DataLossError(absl::StrCat("the file has ", clip->frames, " frames of ",
                                              clip->width, "x", clip->height, ", not ", frames_,
                                              " of ", width_, "x", height_));
    }
    Likeness sum;
    const size_t bytes = frames.front().size();
    for (size_t i = 0; i < frames.size(); ++i) {
      const Likeness one =
          Compare(frames[i], std::span(clip->rgb).subspan(i * bytes, bytes), width_, height_);
      sum.squared_error += one.squared_error / frames_;
      sum.ssim += one.ssim / frames_;
    }
    row.figures.push_back({"psnr_db", Psnr(sum.squared_error)});
    row.figures.push_back({"ssim", sum.ssim});
    return absl::OkStatus();
  }

  const EncoderSettings& settings_;
  const int width_;
  const int height_;
  const int frames_;
  const std::filesystem::path path_;
  Session& session_;
};

absl::StatusOr<bool> Run(const EncoderSettings& settings, Session& session) {
  const absl::StatusOr<BenchShape> shape = ParseShape(settings.shape);
  if (!shape.ok()) return shape.status();
  EncoderBench bench(settings, *shape, session);
  absl::Status status = settings.memory ? bench.Memory() : bench.Speed();
  if (!status.ok()) return status;
  return true;
}

}  // namespace

BenchCommand AddEncoder(CLI::App& app) {
  const auto settings = std::make_shared<EncoderSettings>();
  app.add_option("--kind", settings->kind, "mp4 or mkv")->check(CLI::IsMember({"mp4", "mkv"}));
  AddShapeFlag(app, settings->shape);
  app.add_option("--content", settings->contents, "clean, grain or noise; may be repeated")
      ->check(CLI::IsMember({"clean", "grain", "noise"}))
      ->capture_default_str();
  app.add_option("--preset", settings->presets, "of mp4; may be repeated")
      ->check(CLI::IsMember(std::vector<std::string>(kH264Presets.begin(), kH264Presets.end())))
      ->capture_default_str();
  app.add_option("--crf", settings->crfs, "of mp4; may be repeated")
      ->check(CLI::Range(kBestH264Crf, kWorstH264Crf))
      ->capture_default_str();
  app.add_option("--rate", settings->rate, "frames a second that a decoder hands over")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_flag("--memory", settings->memory,
               "measures the host memory instead, of the first content, preset and crf");
  return [settings](Session& session) { return Run(*settings, session); };
}

}  // namespace wan
