#include "engine/media/video_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <malloc.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <thread>

#include "tests/engine/media/video_file.h"
#include "tests/engine/raw_tensors.h"

namespace wan {
namespace {

using testing::AnyOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

class VideoWriterTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(testing::TempDir()) / ("video_" + std::to_string(getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string Path(const std::string& name) const { return folder_ / name; }

  // Writes all frames, or ends the test.
  void WriteVideo(OutputKind kind, const std::string& path, const VideoFormat& format,
                  const std::vector<Rgb24>& frames) {
    auto writer = OpenVideoWriter(kind, path, format);
    ASSERT_TRUE(writer.ok()) << writer.status();
    for (const Rgb24& frame : frames) {
      const absl::Status status = (*writer)->Write(frame);
      ASSERT_TRUE(status.ok()) << status;
    }
    const absl::Status status = (*writer)->Finish();
    ASSERT_TRUE(status.ok()) << status;
  }

  // The bytes of the file that WriteVideo writes.
  std::string FileOf(OutputKind kind, const std::string& path, const VideoFormat& format,
                     const std::vector<Rgb24>& frames) {
    WriteVideo(kind, path, format, frames);
    std::ifstream file(path, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  }

 private:
  std::filesystem::path folder_;
};

void ExpectEvenTimes(const VideoFile& file, int fps, size_t frames) {
  ASSERT_EQ(file.times.size(), frames);
  for (size_t i = 0; i < frames; ++i) {
    // Matroska keeps milliseconds.
    EXPECT_NEAR(file.times[i], static_cast<double>(i) / fps, 6e-4) << "frame " << i;
  }
  EXPECT_NEAR(file.seconds, static_cast<double>(frames) / fps, 2e-3);
}

TEST_F(VideoWriterTest, MkvGivesBackExactlyTheFrames) {
  for (const VideoFormat& format :
       {VideoFormat{64, 48, 24}, {17, 33, 16}, {16, 16, 1}, {129, 65, 120}}) {
    SCOPED_TRACE(testing::Message() << format.width << "x" << format.height);
    std::vector<Rgb24> frames;
    for (unsigned i = 0; i < 7; ++i) frames.push_back(Noise(format, i));
    frames.push_back(Moving(format, 3));
    const std::string path = Path("video.mkv");
    WriteVideo(OutputKind::kLosslessMkv, path, format, frames);

    size_t seen = 0;
    const VideoFile file = ReadVideo(path, [&](const AVFrame& frame) {
      ASSERT_EQ(frame.format, AV_PIX_FMT_BGR0);
      Rgb24 rgb;
      for (int y = 0; y < frame.height; ++y) {
        const uint8_t* row = frame.data[0] + static_cast<ptrdiff_t>(y) * frame.linesize[0];
        for (int x = 0; x < frame.width; ++x) {
          rgb.insert(rgb.end(), {row[4 * x + 2], row[4 * x + 1], row[4 * x]});
        }
      }
      EXPECT_EQ(rgb, frames[seen]) << "frame " << seen;
      ++seen;
    });
    EXPECT_EQ(seen, frames.size());
    EXPECT_THAT(file.container, HasSubstr("matroska"));
    EXPECT_EQ(file.codec, "ffv1");
    EXPECT_EQ(file.width, format.width);
    EXPECT_EQ(file.height, format.height);
    EXPECT_NEAR(file.fps, format.fps, 1e-3);
    EXPECT_EQ(file.keyframes, static_cast<int>(frames.size()));
    ExpectEvenTimes(file, format.fps, frames.size());
  }
}

double Psnr(double squares, size_t count) {
  return 10 * std::log10(255.0 * 255.0 / (squares / static_cast<double>(count)));
}

TEST_F(VideoWriterTest, Mp4IsWhatEveryPlayerTakes) {
  const VideoFormat format{128, 96, 24};
  std::vector<Rgb24> frames;
  for (int t = 0; t < 61; ++t) frames.push_back(Moving(format, t));
  const std::string path = Path("video.mp4");
  WriteVideo(OutputKind::kMp4, path, format, frames);

  double squares = 0;
  size_t seen = 0;
  const VideoFile file = ReadVideo(path, [&](const AVFrame& frame) {
    const Rgb24& source = frames[seen++];
    for (int y = 0; y < format.height; ++y) {
      for (int x = 0; x < format.width; ++x) {
        const uint8_t* rgb = source.data() + 3 * (y * format.width + x);
        const double luma = (0.2126 * rgb[0] + 0.7152 * rgb[1] + 0.0722 * rgb[2]) / 255 * 219 + 16;
        const double gap = frame.data[0][y * frame.linesize[0] + x] - luma;
        squares += gap * gap;
      }
    }
  });
  EXPECT_EQ(seen, frames.size());
  EXPECT_GT(Psnr(squares, seen * format.width * format.height), 40);
  EXPECT_THAT(file.container, HasSubstr("mp4"));
  EXPECT_EQ(file.codec, "h264");
  EXPECT_EQ(file.pixel_format, "yuv420p");
  EXPECT_EQ(file.width, 128);
  EXPECT_EQ(file.height, 96);
  EXPECT_EQ(file.fps, 24);
  EXPECT_EQ(file.color_space, AVCOL_SPC_BT709);
  EXPECT_EQ(file.color_primaries, AVCOL_PRI_BT709);
  EXPECT_EQ(file.color_range, AVCOL_RANGE_MPEG);
  EXPECT_EQ(file.keyframes, 2);  // one every two seconds: a player can seek
  ExpectEvenTimes(file, 24, 61);
}

TEST_F(VideoWriterTest, Mp4IsEncodedAsTheOptionsSay) {
  const auto size_with = [&](const H264Options& options) {
    VideoFormat format{128, 96, 24};
    std::vector<Rgb24> frames;
    for (unsigned t = 0; t < 12; ++t) frames.push_back(Noise(format, t));
    format.h264 = options;
    const std::string path = Path("options.mp4");
    WriteVideo(OutputKind::kMp4, path, format, frames);
    return std::filesystem::file_size(path);
  };
  const H264Options defaults;
  EXPECT_LT(size_with({defaults.preset, kWorstH264Crf}), size_with(defaults) / 4);
  EXPECT_GT(size_with({defaults.preset, kBestH264Crf}), size_with(defaults));
  std::set<uintmax_t> sizes;
  for (const char* const preset : kH264Presets) {
    ASSERT_TRUE(IsH264Preset(preset));
    sizes.insert(size_with({preset, defaults.crf}));
  }
  EXPECT_EQ(sizes.size(), kH264Presets.size()) << "each preset makes another file";
  EXPECT_FALSE(IsH264Preset("placebo"));
}

// Colours by BT.709's formulas, not by the library that converted them.
TEST_F(VideoWriterTest, Mp4KeepsColours) {
  const VideoFormat format{32, 32, 24};
  for (const std::array<uint8_t, 3>& color : std::vector<std::array<uint8_t, 3>>{
           {0, 0, 0}, {255, 255, 255}, {255, 0, 0}, {0, 255, 0}, {0, 0, 255}, {200, 120, 40}}) {
    const std::string path = Path("flat.mp4");
    WriteVideo(OutputKind::kMp4, path, format, {Flat(format, color)});
    const double r = color[0] / 255.0;
    const double g = color[1] / 255.0;
    const double b = color[2] / 255.0;
    const double luma = 0.2126 * r + 0.7152 * g + 0.0722 * b;
    const double expected[] = {16 + 219 * luma, 128 + 224 * (b - luma) / 1.8556,
                               128 + 224 * (r - luma) / 1.5748};
    ReadVideo(path, [&](const AVFrame& frame) {
      for (int plane = 0; plane < 3; ++plane) {
        EXPECT_NEAR(frame.data[plane][5 * frame.linesize[plane] + 5], expected[plane], 1.5)
            << "plane " << plane << " of " << testing::PrintToString(color);
      }
    });
  }
}

// The names of the boxes that an MP4 consists of.
std::vector<std::string> Boxes(const std::string& bytes) {
  std::vector<std::string> boxes;
  for (size_t at = 0; at + 8 <= bytes.size();) {
    uint32_t size = 0;
    for (size_t i = 0; i < 4; ++i) size = size << 8 | static_cast<uint8_t>(bytes[at + i]);
    boxes.push_back(bytes.substr(at + 4, 4));
    EXPECT_GE(size, 8u);
    at += std::max<size_t>(size, 8);
  }
  return boxes;
}

// The index before the pictures: a player starts while it downloads.
TEST_F(VideoWriterTest, Mp4HasItsIndexAtTheFront) {
  const VideoFormat format{64, 64, 24};
  const std::string path = Path("video.mp4");
  WriteVideo(OutputKind::kMp4, path, format, {Noise(format, 1), Noise(format, 2)});
  const std::vector<std::string> boxes = Boxes(ReadFileBytes(path));
  const auto position = [&](const std::string& box) {
    return std::find(boxes.begin(), boxes.end(), box) - boxes.begin();
  };
  EXPECT_EQ(boxes.front(), "ftyp");
  EXPECT_LT(position("moov"), position("mdat"));
  EXPECT_LT(position("mdat"), std::ssize(boxes));
}

// Whoever says how many frames come need not wait at the end until all of them are moved.
TEST_F(VideoWriterTest, AnIndexOfAKnownSizeMovesNoPicture) {
  VideoFormat format{128, 128, 24};
  format.frames = 60;
  const std::string path = Path("video.mp4");
  auto writer = OpenVideoWriter(OutputKind::kMp4, path, format);
  ASSERT_TRUE(writer.ok()) << writer.status();
  for (unsigned t = 0; t < 60; ++t) ASSERT_TRUE((*writer)->Write(Noise(format, t)).ok());
  const std::string before = ReadFileBytes(path);
  ASSERT_TRUE((*writer)->Finish().ok());
  const std::string after = ReadFileBytes(path);
  ASSERT_GT(before.size(), size_t{30000}) << "most of it was written";
  const size_t pictures = after.find("mdat") + 4;
  ASSERT_LT(pictures, size_t{10000});
  EXPECT_TRUE(after.substr(pictures, before.size() - pictures) == before.substr(pictures));
  EXPECT_THAT(Boxes(after), ElementsAre("ftyp", "moov", "free", "free", "mdat"));
  EXPECT_EQ(ReadVideo(path, [](const AVFrame&) {}).times.size(), 60u);
}

// Of every length, also with a keyframe and a size of its own for each frame.
TEST_F(VideoWriterTest, TheIndexHasRoomForTheFramesThatWereNamed) {
  for (const int frames : {1, 2, 33, 121, 500}) {
    VideoFormat format{32, 32, 24};
    format.frames = frames;
    std::vector<Rgb24> pictures;
    for (int t = 0; t < frames; ++t) {
      pictures.push_back(t % 3 == 0 ? Noise(format, static_cast<unsigned>(t))
                                    : Flat(format, {static_cast<uint8_t>(t), 90, 200}));
    }
    WriteVideo(OutputKind::kMp4, Path("video.mp4"), format, pictures);
    const VideoFile file = ReadVideo(Path("video.mp4"), [](const AVFrame&) {});
    EXPECT_EQ(file.times.size(), static_cast<size_t>(frames));
  }
}

TEST_F(VideoWriterTest, MoreFramesThanWereNamedAreRefused) {
  VideoFormat format{32, 32, 24};
  format.frames = 2;
  for (const OutputKind kind : {OutputKind::kMp4, OutputKind::kLosslessMkv}) {
    auto writer = OpenVideoWriter(kind, Path("video"), format);
    ASSERT_TRUE(writer.ok()) << writer.status();
    EXPECT_TRUE((*writer)->Write(Noise(format, 1)).ok());
    EXPECT_TRUE((*writer)->Write(Noise(format, 2)).ok());
    const absl::Status status = (*writer)->Write(Noise(format, 3));
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr("was opened for 2 frames"));
    EXPECT_TRUE((*writer)->Finish().ok());
  }
}

TEST_F(VideoWriterTest, OneFrameIsAVideo) {
  const VideoFormat format{64, 32, 16};
  for (const auto& [kind, name] :
       {std::pair(OutputKind::kMp4, "one.mp4"), std::pair(OutputKind::kLosslessMkv, "one.mkv")}) {
    WriteVideo(kind, Path(name), format, {Noise(format, 1)});
    const VideoFile file = ReadVideo(Path(name), [](const AVFrame&) {});
    EXPECT_EQ(file.times.size(), 1u) << name;
    EXPECT_NEAR(file.seconds, 1.0 / 16, 2e-3) << name;
  }
}

// As the pipeline does: opened by one thread, fed by another, closed by a third, two at a time.
TEST_F(VideoWriterTest, EqualFramesAreEqualFiles) {
  const VideoFormat format{64, 48, 24};
  const std::vector<Rgb24> frames = {Noise(format, 1), Noise(format, 2), Moving(format, 3)};
  for (const OutputKind kind : {OutputKind::kMp4, OutputKind::kLosslessMkv}) {
    const std::string first = FileOf(kind, Path("first"), format, frames);
    EXPECT_FALSE(first.empty());
    EXPECT_TRUE(first == FileOf(kind, Path("second"), format, frames)) << static_cast<int>(kind);
  }
}

// So that a video that is made again has the bytes of the first one, whatever machine makes it.
TEST_F(VideoWriterTest, TheNumberOfProcessorsChangesNoByte) {
  cpu_set_t all, one;
  ASSERT_EQ(sched_getaffinity(0, sizeof(all), &all), 0);
  CPU_ZERO(&one);
  for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++cpu) {
    if (CPU_ISSET(cpu, &all)) CPU_SET(cpu, &one);
  }
  const VideoFormat format{128, 128, 24};  // high enough for several threads
  const std::vector<Rgb24> frames = {Noise(format, 1), Noise(format, 2), Moving(format, 3)};
  for (const OutputKind kind : {OutputKind::kMp4, OutputKind::kLosslessMkv}) {
    const std::string on_all = FileOf(kind, Path("all"), format, frames);
    ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
    const std::string on_one = FileOf(kind, Path("one"), format, frames);
    ASSERT_EQ(sched_setaffinity(0, sizeof(all), &all), 0);
    EXPECT_FALSE(on_all.empty());
    EXPECT_TRUE(on_all == on_one) << static_cast<int>(kind);
  }
}

// Fails if the encoder uses memory that it did not write, as x264's macroblock tree does on
// processors with AVX-512 where a row does not have a multiple of eight macroblocks
// (OpenMp4Writer).
TEST_F(VideoWriterTest, TheFormerContentOfMemoryChangesNoByte) {
  for (const auto& [width, height] : std::vector<std::pair<int, int>>{
           {96, 64}, {64, 64}, {192, 320}, {176, 96}, {256, 64}, {34, 38}}) {
    SCOPED_TRACE(testing::Message() << width << "x" << height);
    VideoFormat format{width, height, 16};
    std::vector<Rgb24> frames;
    for (int t = 0; t < 17; ++t) frames.push_back(Moving(format, t));
    for (const char* const preset : kH264Presets) {
      format.h264.preset = preset;
      std::set<std::string> files;
      // glibc fills what it allocates with the parameter's complement; 0 turns that off. The
      // allocators of the sanitizers ignore it.
      for (const int parameter : {0, 1, 170, 200, 255}) {
        mallopt(M_PERTURB, parameter);
        files.insert(FileOf(OutputKind::kMp4, Path("video.mp4"), format, frames));
      }
      mallopt(M_PERTURB, 0);
      EXPECT_EQ(files.size(), 1u) << preset;
    }
  }
}

TEST_F(VideoWriterTest, AFileMayPassFromThreadToThread) {
  const VideoFormat format{64, 64, 24};
  auto mp4 = OpenVideoWriter(OutputKind::kMp4, Path("video.mp4"), format);
  auto mkv = OpenVideoWriter(OutputKind::kLosslessMkv, Path("video.mkv"), format);
  ASSERT_TRUE(mp4.ok() && mkv.ok());
  std::thread([&] {
    for (int t = 0; t < 5; ++t) {
      EXPECT_TRUE((*mp4)->Write(Moving(format, t)).ok());
      EXPECT_TRUE((*mkv)->Write(Moving(format, t)).ok());
    }
  }).join();
  std::thread([&] {
    EXPECT_TRUE((*mp4)->Finish().ok());
    EXPECT_TRUE((*mkv)->Finish().ok());
  }).join();
  for (const char* name : {"video.mp4", "video.mkv"}) {
    EXPECT_EQ(ReadVideo(Path(name), [](const AVFrame&) {}).times.size(), 5u) << name;
  }
}

TEST_F(VideoWriterTest, PathsAreNotReadAsProtocols) {
  const VideoFormat format{16, 16, 24};
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(Path(""));
  for (const char* name : {"a:b.mp4", "pipe:1", "100% déjà vu?.mkv", "frame%03d.mp4"}) {
    WriteVideo(OutputKind::kMp4, name, format, {Noise(format, 1)});
    EXPECT_EQ(ReadVideo(name, [](const AVFrame&) {}).times.size(), 1u) << name;
  }
  std::filesystem::current_path(before);
}

TEST_F(VideoWriterTest, OverwritesAndLeavesRemovingToTheCaller) {
  const VideoFormat format{64, 64, 24};
  const std::string path = Path("video.mkv");
  WriteVideo(OutputKind::kLosslessMkv, path, format, std::vector<Rgb24>(9, Noise(format, 1)));
  WriteVideo(OutputKind::kLosslessMkv, path, format, {Noise(format, 2)});
  EXPECT_EQ(ReadVideo(path, [](const AVFrame&) {}).times.size(), 1u);
  {
    auto abandoned = OpenVideoWriter(OutputKind::kMp4, Path("half.mp4"), format);
    ASSERT_TRUE(abandoned.ok());
    EXPECT_TRUE((*abandoned)->Write(Noise(format, 1)).ok());
  }
  EXPECT_TRUE(std::filesystem::exists(Path("half.mp4")));
}

TEST_F(VideoWriterTest, AFullDiskIsSaidToBeFull) {
  VideoFormat format{64, 64, 24};
  for (const auto& [kind, frames] : {std::pair(OutputKind::kMp4, 1u),
                                     {OutputKind::kMp4, 100u},
                                     {OutputKind::kLosslessMkv, 1u},
                                     {OutputKind::kLosslessMkv, 100u}}) {
    format.frames = frames == 1 ? 0 : 100;
    auto writer = OpenVideoWriter(kind, "/dev/full", format);
    absl::Status status = writer.status();
    for (unsigned t = 0; t < frames && status.ok(); ++t)
      status = (*writer)->Write(Noise(format, t));
    if (status.ok()) status = (*writer)->Finish();
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("/dev/full: No space left on device"));
  }
}

// Wherever in the file the disk ends, also within the index that is written last.
TEST_F(VideoWriterTest, NoticesThatTheDiskFillsUpOnTheWay) {
  VideoFormat format{64, 64, 24};
  std::vector<Rgb24> frames;
  for (unsigned t = 0; t < 30; ++t) frames.push_back(Noise(format, t));
  for (const auto& [kind, announced] :
       {std::pair(OutputKind::kMp4, 0), {OutputKind::kMp4, 30}, {OutputKind::kLosslessMkv, 0}}) {
    format.frames = announced;
    const std::string path = Path("video");
    WriteVideo(kind, path, format, frames);
    const auto whole = std::filesystem::file_size(path);
    for (const auto limit : {whole - 1, whole - 100, whole - 1000, whole / 2, whole / 10}) {
      rlimit before{};
      ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
      const auto old_handler = signal(SIGXFSZ, SIG_IGN);
      const rlimit small = {limit, before.rlim_max};
      ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
      auto writer = OpenVideoWriter(kind, path, format);
      absl::Status status = writer.status();
      for (size_t t = 0; t < frames.size() && status.ok(); ++t) {
        status = (*writer)->Write(frames[t]);
      }
      if (status.ok()) status = (*writer)->Finish();
      setrlimit(RLIMIT_FSIZE, &before);
      signal(SIGXFSZ, old_handler);
      EXPECT_THAT(std::string(status.message()), HasSubstr("video: File too large"))
          << limit << " of " << whole << " bytes";
    }
  }
}

TEST_F(VideoWriterTest, SaysWhatIsWrong) {
  const VideoFormat format{64, 64, 24};
  const auto message = [](const auto& result) { return std::string(result.status().message()); };
  EXPECT_THAT(message(OpenVideoWriter(OutputKind::kMp4, Path("a.mp4"), {63, 64, 24})),
              HasSubstr("would be 63x64; an MP4 with yuv420p needs even sides"));
  EXPECT_THAT(message(OpenVideoWriter(OutputKind::kMp4, Path("a.mp4"), {64, 33, 24})),
              HasSubstr("would be 64x33; an MP4 with yuv420p needs even sides"));
  for (const VideoFormat& wrong :
       {VideoFormat{0, 64, 24}, {64, 8, 24}, {64, 20000, 24}, {64, 64, 0}, {64, 64, 1001}}) {
    EXPECT_EQ(OpenVideoWriter(OutputKind::kMp4, Path("a.mp4"), wrong).status().code(),
              absl::StatusCode::kInvalidArgument);
  }
  EXPECT_THAT(message(OpenVideoWriter(OutputKind::kLatents, Path("a"), format)),
              HasSubstr("is not a video format"));

  const auto nowhere = OpenVideoWriter(OutputKind::kMp4, Path("no/such/folder.mp4"), format);
  EXPECT_EQ(nowhere.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(message(nowhere), HasSubstr("folder.mp4: No such file or directory"));

  auto writer = OpenVideoWriter(OutputKind::kMp4, Path("a.mp4"), format);
  ASSERT_TRUE(writer.ok());
  EXPECT_EQ((*writer)->Finish().code(), absl::StatusCode::kFailedPrecondition);
  const absl::Status status = (*writer)->Write(Rgb24(100));
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("has 100 bytes; must have 12288"));
}

}  // namespace
}  // namespace wan
