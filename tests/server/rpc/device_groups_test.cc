// A whole server with two device groups: what it tells of them, and what it does without one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/synchronization/notification.h"
#include "tests/server/rpc/server_fixture.h"
#include "tests/support/http_get.h"
#include "tests/support/prometheus_text.h"
#include "wan/v1/telemetry.grpc.pb.h"

namespace wan::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

DeviceSample SampleOf(const std::string& device) {
  DeviceSample sample;
  sample.device = device;
  return sample;
}

DeviceUse UseOf(const std::string& device) {
  DeviceUse use;
  use.device = device;
  return use;
}

class DeviceGroupsTest : public ServerTest {
 protected:
  DeviceGroupsTest() {
    engine_.monitor().SetSamples({SampleOf("cpu"), SampleOf("cuda:0"), SampleOf("cuda:1")});
    engine_.monitor().SetGroupUse({UseOf("cuda:0"), UseOf("cuda:1")});
    other_.monitor().SetSamples({SampleOf("cpu"), SampleOf("cuda:2")});
  }
  ~DeviceGroupsTest() override {
    if (server_ != nullptr) StopWhileTimePasses();
    server_.reset();  // before the engine that this class has
  }

  void SetUp() override {
    ServerConfig config = DefaultConfig();
    config.groups = {{{"cuda:0", "cuda:1"}, {}}, {{"cuda:2"}, {"n"}}};
    config.models = {{"m", "synthetic:ti2v-5b"}, {"n", "synthetic:ti2v-5b"}};
    StartTwo(config);
  }

  void StartTwo(const ServerConfig& config) {
    auto started = Server::Start(config, std::vector<Engine*>{&engine_, &other_}, clock_, logger(),
                                 {}, [this] { lost_.Notify(); });
    ASSERT_TRUE(started.ok()) << started.status();
    server_ = *std::move(started);
    channel_ = Connect();
    video_ = wan::v1::VideoGeneration::NewStub(channel_);
    health_ = grpc::health::v1::Health::NewStub(channel_);
    telemetry_ = wan::v1::Telemetry::NewStub(channel_);
    AwaitHealth(true);
  }

  wan::v1::ServerInfo Info() {
    grpc::ClientContext context;
    wan::v1::ServerInfo info;
    EXPECT_TRUE(telemetry_->GetServerInfo(&context, {}, &info).ok());
    return info;
  }

  std::string Get(const std::string& path) {
    const HostPort address = server_->metrics_address();
    const auto answer = support::HttpGet(address.host, address.port, path);
    EXPECT_TRUE(answer.ok()) << answer.status();
    return answer.ok() ? answer->body : "";
  }

  fakes::FakeEngine other_{&clock_};
  absl::Notification lost_;
  std::unique_ptr<wan::v1::Telemetry::Stub> telemetry_;
};

TEST_F(DeviceGroupsTest, EveryGpuAndItsGroupAreShown) {
  wan::v1::ServerInfo info = Info();
  EXPECT_THAT(info.devices(), ElementsAre("cuda:0", "cuda:1", "cuda:2"));
  ASSERT_THAT(info.groups(), SizeIs(2));
  EXPECT_THAT(info.groups(0).resident_models(), ElementsAre("m"));
  EXPECT_THAT(info.groups(1).devices(), ElementsAre("cuda:2"));
  EXPECT_THAT(info.groups(1).models(), ElementsAre("n"));
  EXPECT_THAT(info.groups(1).resident_models(), ElementsAre("n"));

  wan::v1::WatchDevicesRequest request;
  request.set_count(1);
  grpc::ClientContext context;
  const auto stream = telemetry_->WatchDevices(&context, request);
  wan::v1::WatchDevicesResponse round;
  ASSERT_TRUE(stream->Read(&round));
  ASSERT_THAT(round.devices(), SizeIs(4));
  EXPECT_FALSE(round.devices(0).has_group()) << "the processor serves all";
  EXPECT_EQ(round.devices(1).group(), 0);
  EXPECT_EQ(round.devices(2).group(), 0);
  EXPECT_EQ(round.devices(3).device(), "cuda:2");
  EXPECT_EQ(round.devices(3).group(), 1);

  engine_.Hold("T5_Encoding");
  const std::string job = MustCreate().name();
  engine_.AwaitHeld("T5_Encoding");
  EXPECT_EQ(Info().groups(0).job(), job);
  EXPECT_EQ(Info().groups(1).job(), "");
  engine_.Release("T5_Encoding");
  EXPECT_EQ(AwaitEnd(job).group(), 0);
  grpc::ClientContext report_context;
  wan::v1::GetReportRequest report_request;
  report_request.set_job(job);
  wan::v1::JobReport report;
  ASSERT_TRUE(video_->GetReport(&report_context, report_request, &report).ok());
  EXPECT_EQ(report.device(), "cuda:0,1");
  EXPECT_EQ(report.group(), 0);
  ASSERT_THAT(report.devices(), SizeIs(2));
  EXPECT_EQ(report.devices(1).device(), "cuda:1");
}

TEST_F(DeviceGroupsTest, TheRestServesOnUntilTheLastGroupHasLeft) {
  other_.LoseDeviceAt("T5_Encoding");
  wan::v1::GenerationRequest of_n = SmallRequest();
  of_n.set_model("n");
  const std::string lost = MustCreate(of_n).name();
  while (!Info().groups(1).has_error()) {
  }
  EXPECT_EQ(AwaitEnd(MustCreate().name()).state(), wan::v1::JOB_STATE_COMPLETED);
  EXPECT_TRUE(IsServing());
  EXPECT_THAT(Get("/readyz"), HasSubstr("ok"));
  const auto metrics = support::PrometheusText::Parse(Get("/metrics"));
  ASSERT_TRUE(metrics.ok()) << metrics.status();
  EXPECT_EQ(metrics->Value("wan_device_group_serving", {{"group", "0"}, {"device", "cuda:0,1"}}),
            1);
  EXPECT_EQ(metrics->Value("wan_device_group_serving", {{"group", "1"}, {"device", "cuda:2"}}), 0);
  EXPECT_EQ(metrics->Value("wan_device_lost", {{"cause", "error"}}), 0);
  EXPECT_THAT(Log(), HasSubstr("\"message\":\"device group lost\",\"group\":1"));
  EXPECT_FALSE(lost_.HasBeenNotified());
  EXPECT_EQ(MustGet(lost).state(), wan::v1::JOB_STATE_QUEUED);

  engine_.LoseDeviceAt("T5_Encoding");
  MustCreate();
  lost_.WaitForNotification();
  AwaitHealth(false);
}

}  // namespace
}  // namespace wan::server
