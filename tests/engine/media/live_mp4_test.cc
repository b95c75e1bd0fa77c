// The video while it is made: the fragments that VideoFormat::on_part receives.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "tests/engine/media/video_file.h"

namespace wan {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// A packet as a player reads it: its times in the stream's time base, and its bytes.
struct Packet {
  int64_t pts = 0;
  int64_t dts = 0;
  int64_t duration = 0;
  bool key = false;
  std::string bytes;

  bool operator==(const Packet&) const = default;
};

std::ostream& operator<<(std::ostream& out, const Packet& packet) {
  return out << "pts " << packet.pts << " dts " << packet.dts << " duration " << packet.duration
             << (packet.key ? " key " : " ") << packet.bytes.size() << " bytes";
}

std::vector<Packet> PacketsOf(const std::string& path) {
  std::vector<Packet> packets;
  AVFormatContext* demuxer = nullptr;
  EXPECT_EQ(avformat_open_input(&demuxer, ("file:" + path).c_str(), nullptr, nullptr), 0) << path;
  if (demuxer == nullptr) return packets;
  AVPacket* packet = av_packet_alloc();
  while (av_read_frame(demuxer, packet) == 0) {
    packets.push_back({packet->pts, packet->dts, packet->duration,
                       (packet->flags & AV_PKT_FLAG_KEY) != 0,
                       std::string(reinterpret_cast<const char*>(packet->data), packet->size)});
    av_packet_unref(packet);
  }
  av_packet_free(&packet);
  avformat_close_input(&demuxer);
  return packets;
}

// The names of the boxes of which the bytes consist.
std::vector<std::string> Boxes(const std::string& bytes) {
  std::vector<std::string> boxes;
  for (size_t at = 0; at < bytes.size();) {
    uint32_t size = 0;
    for (size_t i = 0; i < 4; ++i) size = size << 8 | static_cast<uint8_t>(bytes.at(at + i));
    boxes.push_back(bytes.substr(at + 4, 4));
    EXPECT_LE(at + size, bytes.size()) << "the box is not whole";
    if (size < 8) break;
    at += size;
  }
  return boxes;
}

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

class LiveMp4Test : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(testing::TempDir()) / ("live_" + std::to_string(getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string Path(const std::string& name) const { return folder_ / name; }

  std::unique_ptr<VideoWriter> Open(OutputKind kind, const std::string& name, VideoFormat format,
                                    bool live) {
    if (live) {
      format.on_part = [this](const VideoPart& part) { parts_.push_back(part); };
    }
    auto writer = OpenVideoWriter(kind, Path(name), format);
    EXPECT_TRUE(writer.ok()) << writer.status();
    return writer.ok() ? *std::move(writer) : nullptr;
  }

  // Writes `frames` frames of a moving picture.
  void Make(OutputKind kind, const std::string& name, const VideoFormat& format, bool live) {
    parts_.clear();
    const auto writer = Open(kind, name, format, live);
    ASSERT_NE(writer, nullptr);
    for (int t = 0; t < format.frames; ++t) ASSERT_TRUE(writer->Write(Moving(format, t)).ok());
    ASSERT_TRUE(writer->Finish().ok());
  }

  // Saves the parts as a file.
  void Save(const std::string& name) const {
    std::ofstream file(Path(name), std::ios::binary);
    for (const VideoPart& part : parts_) file << part.bytes;
  }

  size_t Bytes() const {
    size_t bytes = 0;
    for (const VideoPart& part : parts_) bytes += part.bytes.size();
    return bytes;
  }

  std::vector<VideoPart> parts_;

 private:
  std::filesystem::path folder_;
};

TEST_F(LiveMp4Test, HasThePacketsOfTheFile) {
  for (const VideoFormat& format : {VideoFormat{128, 96, 24, {}, 61},
                                    {64, 64, 16, {}, 8},
                                    {64, 64, 16, {}, 17},
                                    {128, 704, 16, {}, 81},
                                    {32, 32, 30, {}, 1},
                                    {32, 32, 7, {}, 5}}) {
    SCOPED_TRACE(testing::Message()
                 << format.width << "x" << format.height << ", " << format.frames << " frames");
    Make(OutputKind::kMp4, "video.mp4", format, /*live=*/true);
    Save("live.mp4");
    const std::vector<Packet> kept = PacketsOf(Path("video.mp4"));
    EXPECT_EQ(kept.size(), static_cast<size_t>(format.frames));
    EXPECT_EQ(PacketsOf(Path("live.mp4")), kept);
    EXPECT_LE(Bytes(), std::filesystem::file_size(Path("video.mp4")));

    const VideoFile file = ReadVideo(Path("live.mp4"), [](const AVFrame&) {});
    ASSERT_EQ(file.times.size(), static_cast<size_t>(format.frames));
    for (size_t i = 0; i < file.times.size(); ++i) {
      EXPECT_NEAR(file.times[i], static_cast<double>(i) / format.fps, 1e-4) << "frame " << i;
    }
    EXPECT_EQ(file.color_space, AVCOL_SPC_BT709);
    EXPECT_EQ(file.color_range, AVCOL_RANGE_MPEG);
  }
}

TEST_F(LiveMp4Test, ChangesNoByteOfTheFile) {
  const VideoFormat format{64, 48, 24, {}, 30};
  Make(OutputKind::kMp4, "plain.mp4", format, /*live=*/false);
  EXPECT_THAT(parts_, IsEmpty());
  Make(OutputKind::kMp4, "video.mp4", format, /*live=*/true);
  EXPECT_FALSE(parts_.empty());
  const std::string plain = ReadFile(Path("plain.mp4"));
  EXPECT_FALSE(plain.empty());
  EXPECT_TRUE(plain == ReadFile(Path("video.mp4")));
}

TEST_F(LiveMp4Test, AHeaderThenWholeFragments) {
  Make(OutputKind::kMp4, "video.mp4", {64, 48, 24, {}, 30}, /*live=*/true);
  ASSERT_EQ(parts_.size(), 5u);  // 30 frames are four fragments of at most 8
  EXPECT_THAT(Boxes(parts_[0].bytes), ElementsAre("ftyp", "moov"));
  // Profile High, no constraints, level 1.0 in hexadecimal.
  EXPECT_EQ(parts_[0].codec, "avc1.64000a");
  for (size_t i = 1; i < parts_.size(); ++i) {
    EXPECT_EQ(parts_[i].codec, "");
    EXPECT_THAT(Boxes(parts_[i].bytes), ElementsAre("moof", "mdat")) << "part " << i;
  }
}

// A player shows frames before the last one was given.
TEST_F(LiveMp4Test, FragmentsComeWhileFramesAreWritten) {
  const VideoFormat format{64, 64, 24, {}, 121};
  const auto writer = Open(OutputKind::kMp4, "video.mp4", format, /*live=*/true);
  ASSERT_NE(writer, nullptr);
  int frame = 0;
  while (parts_.size() < 2 && frame < format.frames) {
    ASSERT_TRUE(writer->Write(Moving(format, frame++)).ok());
  }
  EXPECT_LT(frame, 40) << "the encoder looks ahead, but not farther than this";
  Save("begun.mp4");
  EXPECT_EQ(ReadVideo(Path("begun.mp4"), [](const AVFrame&) {}).times.size(), 8u);
  while (frame < format.frames) ASSERT_TRUE(writer->Write(Moving(format, frame++)).ok());
  EXPECT_GT(parts_.size(), 10u);
  ASSERT_TRUE(writer->Finish().ok());
}

TEST_F(LiveMp4Test, TheLosslessFileHasNone) {
  Make(OutputKind::kLosslessMkv, "video.mkv", {64, 48, 24, {}, 9}, /*live=*/true);
  EXPECT_THAT(parts_, IsEmpty());
}

TEST_F(LiveMp4Test, FfprobeReadsItFromAPipe) {
  ASSERT_EQ(std::system("ffprobe -version > /dev/null 2>&1"), 0)
      << "install ffmpeg (scripts/setup)";
  Make(OutputKind::kMp4, "video.mp4", {64, 48, 24, {}, 30}, /*live=*/true);
  Save("live.mp4");
  const auto hashes = [this](const std::string& name) {
    const std::string command = "cat '" + Path(name) +
                                "' | ffprobe -v error -show_data_hash sha256 -of csv "
                                "-show_entries packet=pts,dts,duration,size,flags,data_hash - > '" +
                                Path("packets") + "' 2>&1";
    EXPECT_EQ(std::system(command.c_str()), 0);
    return ReadFile(Path("packets"));
  };
  const std::string kept = hashes("video.mp4");
  EXPECT_EQ(std::count(kept.begin(), kept.end(), '\n'), 30);
  EXPECT_EQ(hashes("live.mp4"), kept);
}

}  // namespace
}  // namespace wan
