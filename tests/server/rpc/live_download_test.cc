// DownloadArtifact of a video while it is made.
#include <memory>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/rpc/server_fixture.h"
#include "tests/support/rpc_errors.h"

namespace wan::server {
namespace {

using testing::HasSubstr;
using wan::v1::DownloadArtifactResponse;

class LiveDownloadTest : public ServerTest {
 protected:
  struct Download {
    grpc::ClientContext context;
    std::unique_ptr<grpc::ClientReader<DownloadArtifactResponse>> reader;
  };

  static wan::v1::GenerationRequest Progressive() {
    wan::v1::GenerationRequest request = SmallRequest();
    request.set_progressive(true);
    request.set_seed(5);
    return request;
  }

  std::unique_ptr<Download> Begin(const std::string& name, uint64_t offset = 0) {
    wan::v1::DownloadArtifactRequest request;
    request.set_name(name);
    request.set_offset(offset);
    request.set_live(true);
    auto download = std::make_unique<Download>();
    download->reader = video_->DownloadArtifact(&download->context, request);
    return download;
  }

  // Reads until the data ends with `end`, or the stream ends.
  static std::string Read(Download& download, const std::string& end,
                          wan::v1::Artifact* artifact = nullptr) {
    std::string data;
    DownloadArtifactResponse chunk;
    while (!data.ends_with(end) && download.reader->Read(&chunk)) {
      EXPECT_EQ(chunk.has_artifact(), chunk.offset() == 0);
      if (artifact != nullptr && chunk.has_artifact()) *artifact = chunk.artifact();
      data += chunk.data();
    }
    return data;
  }
};

TEST_F(LiveDownloadTest, SendsFramesWhileTheJobDecodes) {
  StartServing();
  engine_.Hold("Step_1_Inference");
  engine_.Hold("VAE_Decoding");
  const std::string name = MustCreate(Progressive()).name() + "/artifacts/video.mp4";
  engine_.AwaitHeld("Step_1_Inference");
  const auto live = Begin(name);
  engine_.Release("Step_1_Inference");
  engine_.AwaitHeld("VAE_Decoding");
  wan::v1::Artifact artifact;
  EXPECT_EQ(Read(*live, "first of seed 5;", &artifact), "header of seed 5;first of seed 5;");
  EXPECT_EQ(artifact.name(), name);
  EXPECT_EQ(artifact.content_type(), "video/mp4; codecs=\"avc1.64000a\"");
  EXPECT_EQ(artifact.sha256(), "");
  engine_.Release("VAE_Decoding");
  EXPECT_EQ(Read(*live, "*"), "VAE_Decoding of seed 5;Video_Encoding of seed 5;");
  EXPECT_TRUE(live->reader->Finish().ok());

  AwaitEnd(name.substr(0, name.find("/artifacts")));
  const auto ended = Begin(name);
  EXPECT_EQ(Read(*ended, "*", &artifact), "mp4 seed 5");
  EXPECT_EQ(artifact.size_bytes(), 10u);
  EXPECT_TRUE(ended->reader->Finish().ok());
}

TEST_F(LiveDownloadTest, AFailedJobFailsTheCall) {
  StartServing();
  engine_.Hold("VAE_Decoding");
  const std::string job = MustCreate(Progressive()).name();
  const auto live = Begin(job + "/artifacts/video.mp4");
  engine_.AwaitHeld("VAE_Decoding");
  Read(*live, "first of seed 5;");
  engine_.FailAt("VAE_Decoding", absl::InternalError("out of luck"));
  engine_.Release("VAE_Decoding");
  EXPECT_EQ(Read(*live, "*"), "");
  const grpc::Status status = live->reader->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::ABORTED);
  EXPECT_EQ(support::ReasonOf(status), "LIVE_VIDEO_CUT");
  AwaitEnd(job);
}

TEST_F(LiveDownloadTest, IsOfTheMp4FromItsBeginning) {
  StartServing();
  engine_.Hold("VAE_Decoding");
  const std::string job = MustCreate(Progressive()).name();
  const auto wrong = Begin(job + "/artifacts/video.mkv", 3);
  EXPECT_EQ(Read(*wrong, "*"), "");
  const grpc::Status status = wrong->reader->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("must be video.mp4 with live"));
  EXPECT_THAT(status.error_message(), HasSubstr("offset: is 3; must be 0 with live"));
  engine_.Release("VAE_Decoding");
  AwaitEnd(job);
}

}  // namespace
}  // namespace wan::server
