// A server whose jobs' files are also in S3, which moto stands for.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include "tests/e2e/process.h"
#include "tests/e2e/test_server.h"
#include "tests/support/moto_server.h"

namespace wan::e2e {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;

class ObjectsTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!support::MotoServer::IsThere())
      FAIL() << "moto is missing; run scripts/setup, which fetches it";
    setenv("AWS_ACCESS_KEY_ID", "key", 1);
    setenv("AWS_SECRET_ACCESS_KEY", "very-secret", 1);
    moto_.emplace();
  }
  ServerOptions Options() const {
    return {.data_dir = folder_.path(), .flags = {"--objects", moto_->Place("wan")}};
  }

  const TemporaryFolder folder_;
  std::optional<support::MotoServer> moto_;
};

TEST_F(ObjectsTest, AVideoOutlivesTheDisk) {
  std::optional<TestServer> server(std::in_place, Options());
  const wan::v1::Job job = server->Await(server->Submit(TinyRequest()).name());
  ASSERT_EQ(job.state(), wan::v1::JOB_STATE_COMPLETED);
  const std::string video = job.artifacts(0).name();
  const std::string bytes = server->Download(video);
  EXPECT_EQ(bytes.size(), static_cast<size_t>(job.artifacts(0).size_bytes()));
  fs::remove_all(folder_.path() + "/artifacts");
  EXPECT_TRUE(server->Download(video) == bytes);
  EXPECT_TRUE(server->Download(video, 100) == bytes.substr(100));
  server->Kill();
  server.emplace(Options());
  EXPECT_FALSE(fs::exists(folder_.path() + "/artifacts/" + job.name().substr(5)));
  EXPECT_TRUE(server->Download(video) == bytes);
  const std::string metrics = server->Metrics();
  EXPECT_THAT(metrics, HasSubstr("wan_object_requests_total{operation=\"get\",outcome=\"ok\"} "));
  EXPECT_THAT(metrics, Not(HasSubstr("wan_object_bytes_total{direction=\"received\"} 0\n")));
  EXPECT_THAT(server->Log(), Not(HasSubstr("very-secret")));
}

TEST_F(ObjectsTest, AJobWaitsForAStoreThatIsAway) {
  TestServer server(Options());
  moto_->Stop();
  const std::string name = server.Submit(TinyRequest()).name();
  server.AwaitLog(name + " waits to be published");
  EXPECT_EQ(server.Get(name).state(), wan::v1::JOB_STATE_RUNNING);
  moto_->Restart();
  EXPECT_EQ(server.Await(name).state(), wan::v1::JOB_STATE_COMPLETED);
}

TEST_F(ObjectsTest, AMissingBucketEndsTheStart) {
  const std::string place = "s3://nowhere/wan?endpoint=" + moto_->endpoint();
  const ProcessResult result =
      RunProcess({std::string(WAN_BINARY_DIR) + "/wanserve", "--data-dir", folder_.path(),
                  "--listen", "127.0.0.1:0", "--metrics-listen", "127.0.0.1:0", "--http-listen",
                  "none", "--model", ServerOptions::TinyModel(), "--objects", place});
  EXPECT_NE(result.exit_code, 0);
  EXPECT_THAT(result.err, HasSubstr("the bucket nowhere does not exist"));
}

}  // namespace
}  // namespace wan::e2e
