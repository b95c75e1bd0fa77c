#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/server/rpc/server_fixture.h"
#include "tests/support/rpc_errors.h"
#include "wan/v1/administration.grpc.pb.h"
#include "wan/v1/telemetry.grpc.pb.h"

namespace wan::server {
namespace {

using support::DetailOf;
using support::ReasonOf;
using support::ViolatedFields;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class AdministrationTest : public ServerTest {
 protected:
  void SetUp() override {
    StartServing();
    administration_ = wan::v1::Administration::NewStub(channel_);
    telemetry_ = wan::v1::Telemetry::NewStub(channel_);
  }

  grpc::Status Drain(const wan::v1::DrainRequest& request, wan::v1::DrainResponse* response) {
    grpc::ClientContext context;
    return administration_->Drain(&context, request, response);
  }

  wan::v1::ServerInfo Info() {
    grpc::ClientContext context;
    wan::v1::ServerInfo info;
    EXPECT_TRUE(telemetry_->GetServerInfo(&context, {}, &info).ok());
    return info;
  }
  bool InfoSaysDraining() { return Info().draining(); }

  std::string CreateHeld(const std::string& stage) {
    engine_.Hold(stage);
    const std::string name = MustCreate().name();
    engine_.AwaitHeld(stage);
    return name;
  }

  std::unique_ptr<wan::v1::Administration::Stub> administration_;
  std::unique_ptr<wan::v1::Telemetry::Stub> telemetry_;
};

TEST_F(AdministrationTest, ADrainedServerTakesNoJobsAndAnswersAllElse) {
  const std::string name = CreateHeld("Step_1_Inference");
  EXPECT_FALSE(InfoSaysDraining());
  wan::v1::DrainResponse response;
  grpc::Status status;
  std::thread drainer([&] { status = Drain({}, &response); });
  AwaitHealth(false);
  AwaitHealth(false, "wan.v1.VideoGeneration");
  EXPECT_TRUE(InfoSaysDraining());
  wan::v1::Job refused;
  const grpc::Status refusal = CreateJob(SmallRequest(), &refused);
  EXPECT_EQ(refusal.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(ReasonOf(refusal), "SERVER_DRAINING");
  EXPECT_TRUE(DetailOf<google::rpc::RetryInfo>(refusal).has_value());
  EXPECT_EQ(MustGet(name).state(), wan::v1::JOB_STATE_RUNNING);
  engine_.Release("Step_1_Inference");
  drainer.join();
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(response.job(), name);
  EXPECT_TRUE(response.job_ended());

  // Until it is stopped, the server shows what it has.
  std::vector<wan::v1::Event> events;
  EXPECT_TRUE(Watch(name, 0, &events).ok());
  EXPECT_TRUE(events.back().has_completed());
  grpc::ClientContext context;
  wan::v1::DownloadArtifactRequest download;
  download.set_name(MustGet(name).artifacts(0).name());
  const auto stream = video_->DownloadArtifact(&context, download);
  wan::v1::DownloadArtifactResponse chunk;
  std::string bytes;
  while (stream->Read(&chunk)) bytes += chunk.data();
  EXPECT_TRUE(stream->Finish().ok());
  EXPECT_THAT(bytes, HasSubstr("seed"));
  EXPECT_FALSE(IsServing());
  EXPECT_THAT(Log(), HasSubstr("\"message\":\"draining\""));
  EXPECT_THAT(Log(), HasSubstr("\"method\":\"/wan.v1.Administration/Drain\""));
}

TEST_F(AdministrationTest, TheEndOfTheCallIsNotTheEndOfTheDrain) {
  const std::string name = CreateHeld("Step_1_Inference");
  grpc::ClientContext context;
  wan::v1::DrainResponse response;
  std::thread caller([&] {
    EXPECT_EQ(administration_->Drain(&context, {}, &response).error_code(),
              grpc::StatusCode::CANCELLED);
  });
  AwaitHealth(false);
  context.TryCancel();
  caller.join();
  EXPECT_TRUE(InfoSaysDraining());
  // Another call waits for the same end.
  grpc::Status status;
  std::thread second([&] { status = Drain({}, &response); });
  engine_.Release("Step_1_Inference");
  second.join();
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(response.job(), name);
  EXPECT_TRUE(response.job_ended());
}

TEST_F(AdministrationTest, TheTimeoutBoundsTheRunningJob) {
  const std::string name = CreateHeld("Step_1_Inference");
  wan::v1::DrainRequest request;
  request.mutable_timeout()->set_seconds(0);
  wan::v1::DrainResponse response;
  ASSERT_TRUE(Drain(request, &response).ok());  // although nothing releases the engine
  EXPECT_EQ(response.job(), name);
  EXPECT_FALSE(response.job_ended());
  EXPECT_EQ(response.queued_jobs(), 1);
  EXPECT_EQ(MustGet(name).state(), wan::v1::JOB_STATE_QUEUED);
}

TEST_F(AdministrationTest, UndrainTakesADrainBack) {
  const std::string name = CreateHeld("Step_1_Inference");
  wan::v1::DrainRequest request;
  request.mutable_timeout()->set_seconds(3600);
  wan::v1::DrainResponse response;
  grpc::Status status;
  std::thread drainer([&] { status = Drain(request, &response); });
  AwaitHealth(false);
  ASSERT_EQ(Info().not_serving_reasons_size(), 1);
  EXPECT_EQ(Info().not_serving_reasons(0).reason(), "DRAINING");
  grpc::ClientContext context;
  wan::v1::UndrainResponse undrained;
  ASSERT_TRUE(administration_->Undrain(&context, {}, &undrained).ok());
  EXPECT_EQ(undrained.queued_jobs(), 0);
  drainer.join();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::ABORTED);
  EXPECT_EQ(ReasonOf(status), "DRAIN_TAKEN_BACK");
  EXPECT_TRUE(IsServing());
  EXPECT_FALSE(InfoSaysDraining());
  EXPECT_EQ(Info().not_serving_reasons_size(), 0);
  engine_.Release("Step_1_Inference");
  EXPECT_EQ(AwaitEnd(name).state(), wan::v1::JOB_STATE_COMPLETED);
  EXPECT_EQ(AwaitEnd(MustCreate().name()).state(), wan::v1::JOB_STATE_COMPLETED);
  EXPECT_THAT(Log(), HasSubstr("\"message\":\"undrained\""));
  EXPECT_THAT(Log(), HasSubstr("\"method\":\"/wan.v1.Administration/Undrain\""));
  grpc::ClientContext again;
  const grpc::Status nothing = administration_->Undrain(&again, {}, &undrained);
  EXPECT_EQ(nothing.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(ReasonOf(nothing), "NOT_DRAINING");
}

TEST_F(AdministrationTest, AStopAnswersTheCallsOfADrain) {
  const std::string name = CreateHeld("Step_1_Inference");
  wan::v1::DrainRequest request;
  request.mutable_timeout()->set_seconds(3600);
  wan::v1::DrainResponse response;
  grpc::Status status;
  std::thread drainer([&] { status = Drain(request, &response); });
  AwaitHealth(false);
  StopWhileTimePasses();
  drainer.join();
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(response.job(), name);
  EXPECT_FALSE(response.job_ended());
}

TEST_F(AdministrationTest, ATimeoutThatIsNoneIsRefusedAndNothingIsDrained) {
  wan::v1::DrainRequest negative;
  negative.mutable_timeout()->set_seconds(-1);
  wan::v1::DrainRequest longer;
  longer.mutable_timeout()->set_seconds(86'401);
  for (const wan::v1::DrainRequest& request : {negative, longer}) {
    wan::v1::DrainResponse response;
    const grpc::Status status = Drain(request, &response);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_THAT(ViolatedFields(status), ElementsAre("timeout"));
  }
  EXPECT_FALSE(InfoSaysDraining());
  EXPECT_TRUE(IsServing());
}

}  // namespace
}  // namespace wan::server
