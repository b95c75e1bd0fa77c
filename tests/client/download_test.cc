#include "client/download.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "client/sha256.h"
#include "tests/client/fakes/recording_backoff_clock.h"
#include "tests/client/fakes/scripted_server.h"
#include "tests/client/fakes/tcp_relay.h"
#include "tests/client/fakes/temp_folder.h"

namespace wan::client {
namespace {

using fakes::ReadFile;
using fakes::TempFolder;
using fakes::WriteFile;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Chunk = wan::v1::DownloadArtifactResponse;
using ChunkStream = fakes::Stream<Chunk>;
namespace fs = std::filesystem;

std::string HexSha256(const std::string& bytes) {
  Sha256 hash;
  hash.Update(bytes);
  return hash.Finish();
}

class DownloadTest : public testing::Test {
 protected:
  DownloadTest() {
    for (int i = 0; i < 1000; ++i) bytes_ += std::to_string(i) + ",";
    artifact_.set_name("jobs/a1/artifacts/video.mp4");
    artifact_.set_size_bytes(bytes_.size());
    artifact_.set_sha256(HexSha256(bytes_));
  }

  // What a server sends from an offset: chunks of 1000 bytes, up to `end`.
  ChunkStream From(uint64_t offset, uint64_t end) const {
    ChunkStream stream;
    do {
      Chunk chunk;
      if (stream.messages.empty()) *chunk.mutable_artifact() = artifact_;
      chunk.set_offset(offset);
      chunk.set_data(bytes_.substr(offset, std::min<uint64_t>(1000, end - offset)));
      offset += chunk.data().size();
      stream.messages.push_back(std::move(chunk));
    } while (offset < end);
    return stream;
  }

  // The server that sends what it is asked for, and notes the offsets.
  void ServeWhole() {
    server_.scripts.download = [this](const wan::v1::DownloadArtifactRequest& request) {
      EXPECT_EQ(request.name(), artifact_.name());
      offsets_.push_back(request.offset());
      return From(request.offset(), bytes_.size());
    };
  }

  absl::Status Fetch(const VideoClient& videos) {
    return Download(videos, artifact_, folder_ / "video.mp4");
  }
  absl::Status Fetch() { return Fetch(videos_); }
  fs::path Part() const { return PartPath(artifact_, folder_ / "video.mp4"); }

  std::string bytes_;
  wan::v1::Artifact artifact_;
  const TempFolder folder_;
  fakes::ScriptedServer server_;
  const Connection connection_{{.server = server_.address()}};
  fakes::RecordingBackoffClock clock_;
  const VideoClient videos_{connection_, {.max_retries = 3}, clock_};
  std::vector<uint64_t> offsets_;
};

TEST_F(DownloadTest, TheWholeFile) {
  ServeWhole();
  std::vector<uint64_t> done;
  EXPECT_TRUE(
      Download(videos_, artifact_, folder_ / "video.mp4", [&](uint64_t bytes, uint64_t total) {
        EXPECT_EQ(total, bytes_.size());
        done.push_back(bytes);
      }).ok());
  EXPECT_EQ(ReadFile(folder_ / "video.mp4"), bytes_);
  EXPECT_FALSE(fs::exists(Part()));
  EXPECT_THAT(done, ElementsAre(1000, 2000, 3000, 3890));
}

TEST_F(DownloadTest, GoesOnWhereAnEarlierOneStopped) {
  ServeWhole();
  WriteFile(Part(), bytes_.substr(0, 1234));
  EXPECT_TRUE(Fetch().ok());
  EXPECT_EQ(ReadFile(folder_ / "video.mp4"), bytes_);
  EXPECT_THAT(offsets_, ElementsAre(1234));
}

TEST_F(DownloadTest, ACompletePartNeedsNoBytes) {
  ServeWhole();
  WriteFile(Part(), bytes_);
  EXPECT_TRUE(Fetch().ok());
  EXPECT_EQ(ReadFile(folder_ / "video.mp4"), bytes_);
  EXPECT_THAT(offsets_, IsEmpty());
}

TEST_F(DownloadTest, APartThatIsTooLongStartsOver) {
  ServeWhole();
  WriteFile(Part(), bytes_ + "more");
  EXPECT_TRUE(Fetch().ok());
  EXPECT_EQ(ReadFile(folder_ / "video.mp4"), bytes_);
  EXPECT_THAT(offsets_, ElementsAre(0));
}

TEST_F(DownloadTest, ThePartOfAnotherArtifactIsNotUsed) {
  ServeWhole();
  wan::v1::Artifact other = artifact_;
  other.set_sha256(HexSha256("other"));
  WriteFile(PartPath(other, folder_ / "video.mp4"), "other bytes");
  EXPECT_TRUE(Fetch().ok());
  EXPECT_EQ(ReadFile(folder_ / "video.mp4"), bytes_);
  EXPECT_THAT(offsets_, ElementsAre(0));
}

TEST_F(DownloadTest, ADamagedPartIsFoundOutAndDropped) {
  ServeWhole();
  std::string damaged = bytes_.substr(0, 1000);
  damaged[0] = 'X';
  WriteFile(Part(), damaged);
  WriteFile(folder_ / "video.mp4", "old");
  EXPECT_EQ(Fetch().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(ReadFile(folder_ / "video.mp4"), "old");
  EXPECT_FALSE(fs::exists(Part()));
  // The next attempt starts afresh.
  EXPECT_TRUE(Fetch().ok());
  EXPECT_EQ(ReadFile(folder_ / "video.mp4"), bytes_);
  EXPECT_THAT(offsets_, ElementsAre(1000, 0));
}

TEST_F(DownloadTest, ATooShortStreamIsFoundOut) {
  server_.scripts.download = [this](const auto&) { return From(0, 2000); };
  EXPECT_EQ(Fetch().code(), absl::StatusCode::kDataLoss);
  EXPECT_FALSE(fs::exists(folder_ / "video.mp4"));
}

TEST_F(DownloadTest, AHoleBetweenChunksIsFoundOut) {
  server_.scripts.download = [this](const auto&) {
    ChunkStream stream = From(0, bytes_.size());
    stream.messages.erase(stream.messages.begin() + 1);
    return stream;
  };
  const absl::Status status = Fetch();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_NE(status.message().find("byte 2000"), absl::string_view::npos) << status;
  // What came before the hole is right, and stays.
  EXPECT_EQ(fs::file_size(Part()), 1000u);
}

TEST_F(DownloadTest, GoesOnAfterTheServerWasGone) {
  // More often in all than it may be gone in a row.
  server_.scripts.download = [this](const wan::v1::DownloadArtifactRequest& request) {
    offsets_.push_back(request.offset());
    const uint64_t end = std::min<uint64_t>(request.offset() + 800, bytes_.size());
    ChunkStream stream = From(request.offset(), end);
    if (end < bytes_.size()) stream.end = grpc::Status(grpc::StatusCode::UNAVAILABLE, "gone");
    return stream;
  };
  EXPECT_TRUE(Fetch().ok());
  EXPECT_EQ(ReadFile(folder_ / "video.mp4"), bytes_);
  EXPECT_THAT(offsets_, ElementsAre(0, 800, 1600, 2400, 3200));
}

TEST_F(DownloadTest, SurvivesABrokenConnection) {
  fakes::TcpRelay relay(server_.port());
  const Connection connection({.server = relay.address()});
  const VideoClient videos(connection, {.max_retries = 3}, clock_);
  server_.scripts.download = [&](const wan::v1::DownloadArtifactRequest& request) {
    offsets_.push_back(request.offset());
    if (request.offset() > 0) return From(request.offset(), bytes_.size());
    ChunkStream stream = From(0, 2000);
    stream.hold = true;
    return stream;
  };
  const absl::Status status =
      Download(videos, artifact_, folder_ / "video.mp4", [&](uint64_t done, uint64_t) {
        if (done == 2000) relay.BreakConnections();
      });
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(ReadFile(folder_ / "video.mp4"), bytes_);
  EXPECT_THAT(offsets_, ElementsAre(0, 2000));
}

TEST_F(DownloadTest, GivesUpInTheEndAndKeepsWhatItHas) {
  server_.scripts.download = [this](const wan::v1::DownloadArtifactRequest& request) {
    ChunkStream stream;
    if (request.offset() == 0) stream = From(0, 1000);
    stream.end = grpc::Status(grpc::StatusCode::UNAVAILABLE, "gone");
    return stream;
  };
  EXPECT_EQ(Fetch().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(fs::file_size(Part()), 1000u);
  EXPECT_EQ(clock_.delays.size(), 3u);
}

TEST_F(DownloadTest, AStopEndsTheWait) {
  server_.scripts.download = [](const auto&) {
    return ChunkStream{{}, grpc::Status(grpc::StatusCode::UNAVAILABLE, "gone")};
  };
  std::stop_source stop;
  clock_.on_wait = [&] { stop.request_stop(); };
  EXPECT_EQ(Download(videos_, artifact_, folder_ / "video.mp4", nullptr, stop.get_token()).code(),
            absl::StatusCode::kCancelled);
  EXPECT_EQ(clock_.delays.size(), 1u);
}

TEST_F(DownloadTest, ARefusedDownloadLeavesNothingBehind) {
  server_.scripts.download = [](const auto&) {
    return ChunkStream{{}, grpc::Status(grpc::StatusCode::NOT_FOUND, "no such artifact")};
  };
  EXPECT_EQ(Fetch(), absl::NotFoundError("no such artifact"));
  EXPECT_TRUE(fs::is_empty(folder_.path()));
}

TEST_F(DownloadTest, AnEmptyArtifact) {
  artifact_.set_size_bytes(0);
  artifact_.set_sha256(HexSha256(""));
  EXPECT_TRUE(Fetch().ok());
  EXPECT_TRUE(fs::exists(folder_ / "video.mp4"));
}

TEST_F(DownloadTest, NoFolder) {
  EXPECT_EQ(Download(videos_, artifact_, folder_ / "none" / "video.mp4").code(),
            absl::StatusCode::kInternal);
}

}  // namespace
}  // namespace wan::client
