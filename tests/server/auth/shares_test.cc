// What one principal may take of what all share, over however many connections.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <list>
#include <memory>
#include <string>
#include <vector>

#include "tests/server/auth/authenticated_server.h"
#include "tests/support/rpc_errors.h"

namespace wan::server {
namespace {

using ::testing::HasSubstr;

class SharesTest : public AuthenticatedServerTest {
 protected:
  struct Download {
    std::unique_ptr<grpc::ClientContext> context;
    std::unique_ptr<grpc::ClientReader<wan::v1::DownloadArtifactResponse>> reader;
  };

  // A file of the principal's that is more than a client takes unasked.
  std::string MakeFile(wan::v1::VideoGeneration::Stub& stub, const std::string& token) {
    wan::v1::CreateJobRequest create;
    *create.mutable_request() = SmallRequest();
    wan::v1::Job job;
    EXPECT_TRUE(stub.CreateJob(As(token).get(), create, &job).ok());
    wan::v1::WatchJobRequest watch;
    watch.set_name(job.name());
    const auto context = As(token);
    const auto events = stub.WatchJob(context.get(), watch);
    wan::v1::Event event;
    while (events->Read(&event)) {
    }
    wan::v1::GetJobRequest get;
    get.set_name(job.name());
    EXPECT_TRUE(stub.GetJob(As(token).get(), get, &job).ok());
    return job.artifacts(0).name();
  }

  // Begins a download and reads its first chunk; an error if there was none.
  grpc::Status Begin(wan::v1::VideoGeneration::Stub& stub, const std::string& token,
                     const std::string& file, Download* download) {
    wan::v1::DownloadArtifactRequest request;
    request.set_name(file);
    download->context = As(token);
    download->reader = stub.DownloadArtifact(download->context.get(), request);
    wan::v1::DownloadArtifactResponse chunk;
    if (download->reader->Read(&chunk)) return grpc::Status::OK;
    return download->reader->Finish();
  }
};

TEST_F(SharesTest, APrincipalHasHalfOfTheDownloads) {
  const std::string eve = NewTokenOf("eve", Role::kUser);
  const std::string alice = NewTokenOf("alice", Role::kUser);
  StartServing(AuthenticatedConfig());
  engine_.PadOutputs(size_t{32} << 20);
  const std::string file = MakeFile(*video_, eve);
  const std::string others = MakeFile(*video_, alice);
  std::vector<std::unique_ptr<wan::v1::VideoGeneration::Stub>> connections;
  std::list<Download> held;
  grpc::Status status;
  for (int connection = 0; connection < 4; ++connection) {
    connections.push_back(wan::v1::VideoGeneration::NewStub(Connect()));
    for (int i = 0; i < 64; ++i) {
      Download download;
      status = Begin(*connections.back(), eve, file, &download);
      if (status.ok()) held.push_back(std::move(download));
    }
  }
  EXPECT_EQ(held.size(), 128);
  EXPECT_EQ(support::ReasonOf(status), "SERVER_BUSY");
  EXPECT_THAT(status.error_message(),
              HasSubstr("this caller has 128 of the server's 256 open downloads, which is its part "
                        "now; end one first"));
  Download download;
  status = Begin(*video_, alice, others, &download);
  EXPECT_TRUE(status.ok()) << status.error_message();
  download.context->TryCancel();
  for (const Download& one : held) one.context->TryCancel();
}

}  // namespace
}  // namespace wan::server
