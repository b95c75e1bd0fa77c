#include "engine/media/video_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/engine/media/video_file.h"

namespace wan {
namespace {

using testing::HasSubstr;

class VideoReaderTest : public testing::Test {
 protected:
  VideoReaderTest()
      : folder_(std::filesystem::path(testing::TempDir()) /
                ("video_reader_test." + std::to_string(getpid()))) {
    std::filesystem::create_directories(folder_);
  }
  ~VideoReaderTest() override { std::filesystem::remove_all(folder_); }

  std::string Path(const std::string& name) const { return (folder_ / name).string(); }

  std::string Write(OutputKind kind, const std::string& name, const VideoFormat& format,
                    const std::vector<Rgb24>& frames) const {
    auto writer = OpenVideoWriter(kind, Path(name), format);
    EXPECT_TRUE(writer.ok()) << writer.status();
    for (const Rgb24& frame : frames) EXPECT_TRUE((*writer)->Write(frame).ok());
    EXPECT_TRUE((*writer)->Finish().ok());
    return Path(name);
  }

  std::filesystem::path folder_;
};

TEST_F(VideoReaderTest, ALosslessVideoIsReadExactly) {
  for (const VideoFormat& format : {VideoFormat{64, 48, 24}, {17, 33, 16}, {129, 65, 30}}) {
    SCOPED_TRACE(testing::Message() << format.width << "x" << format.height);
    std::vector<Rgb24> frames;
    for (unsigned i = 0; i < 5; ++i) frames.push_back(Noise(format, i));
    const std::string path = Write(OutputKind::kLosslessMkv, "a.mkv", format, frames);

    const auto reader = OpenVideoReader(path);
    ASSERT_TRUE(reader.ok()) << reader.status();
    EXPECT_EQ((*reader)->width(), format.width);
    EXPECT_EQ((*reader)->height(), format.height);
    EXPECT_DOUBLE_EQ((*reader)->fps(), format.fps);
    Rgb24 read;
    for (const Rgb24& frame : frames) {
      EXPECT_TRUE((*reader)->Read(read).value());
      EXPECT_EQ(read, frame);
    }
    EXPECT_FALSE((*reader)->Read(read).value());
    EXPECT_FALSE((*reader)->Read(read).value()) << "the end stays the end";

    const VideoClip clip = ReadVideo(path).value();
    EXPECT_EQ(clip.frames, 5);
    EXPECT_EQ(clip.width, format.width);
    EXPECT_EQ(clip.height, format.height);
    EXPECT_EQ(Rgb24(clip.rgb.end() - static_cast<ptrdiff_t>(frames[4].size()), clip.rgb.end()),
              frames[4]);
  }
}

// The encoder keeps frames back and reorders them.
TEST_F(VideoReaderTest, AnMp4HasAllFramesInOrder) {
  const VideoFormat format{64, 48, 24};
  std::vector<Rgb24> frames;
  for (int t = 0; t < 40; ++t) frames.push_back(Moving(format, t));
  const VideoClip clip = ReadVideo(Write(OutputKind::kMp4, "a.mp4", format, frames)).value();
  ASSERT_EQ(clip.frames, 40);
  for (int t = 0; t < 40; ++t) {
    double squares = 0;
    for (size_t i = 0; i < frames[t].size(); ++i) {
      const double difference = frames[t][i] - clip.rgb[t * frames[t].size() + i];
      squares += difference * difference;
    }
    EXPECT_LT(squares / static_cast<double>(frames[t].size()), 30) << "frame " << t;
  }
}

// The server's MP4 files say BT.709; by the matrix of BT.601 colours would be off by 12 and more.
TEST_F(VideoReaderTest, ColoursFollowTheMatrixThatTheFileNames) {
  const VideoFormat format{64, 48, 24};
  for (const std::array<uint8_t, 3>& colour :
       {std::array<uint8_t, 3>{20, 200, 30}, {220, 30, 40}, {30, 40, 210}, {128, 128, 128}}) {
    const std::vector<Rgb24> frames(3, Flat(format, colour));
    const VideoClip clip = ReadVideo(Write(OutputKind::kMp4, "a.mp4", format, frames)).value();
    for (size_t c = 0; c < 3; ++c) EXPECT_NEAR(clip.rgb[c], colour[c], 4) << "channel " << c;
  }
}

TEST_F(VideoReaderTest, ABrokenFileIsNamed) {
  const VideoFormat format{64, 48, 24};
  const std::string path =
      Write(OutputKind::kLosslessMkv, "a.mkv", format, {Noise(format, 1), Noise(format, 2)});
  std::filesystem::resize_file(path, 300);
  const absl::Status cut = ReadVideo(path).status();
  EXPECT_TRUE(absl::IsDataLoss(cut)) << cut;
  EXPECT_THAT(cut.message(), HasSubstr("a.mkv"));

  std::ofstream(Path("text.mkv")) << "no video";
  EXPECT_THAT(ReadVideo(Path("text.mkv")).status().message(), HasSubstr("text.mkv: "));
  EXPECT_THAT(ReadVideo(Path("none.mkv")).status().message(), HasSubstr("none.mkv: No such file"));
}

}  // namespace
}  // namespace wan
