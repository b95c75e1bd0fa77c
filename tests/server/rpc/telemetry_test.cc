#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "server/conversion/convert.h"
#include "tests/server/rpc/server_fixture.h"
#include "tests/support/rpc_errors.h"
#include "wan/v1/telemetry.grpc.pb.h"

namespace wan::server {
namespace {

using support::ReasonOf;
using support::ViolatedFields;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

class TelemetryTest : public ServerTest {
 protected:
  void SetUp() override {
    StartServing();
    telemetry_ = wan::v1::Telemetry::NewStub(channel_);
  }

  std::unique_ptr<wan::v1::Telemetry::Stub> telemetry_;
};

TEST_F(TelemetryTest, ServerInfo) {
  engine_.Hold("T5_Encoding");
  MustCreate();
  engine_.AwaitHeld("T5_Encoding");
  MustCreate();
  MustCreate();
  grpc::ClientContext context;
  wan::v1::ServerInfo info;
  ASSERT_TRUE(telemetry_->GetServerInfo(&context, {}, &info).ok());
  EXPECT_THAT(info.version(), ::testing::MatchesRegex("[0-9]+\\.[0-9]+\\.[0-9]+"));
  EXPECT_EQ(info.libraries().at("fake"), "1.0");
  EXPECT_THAT(info.libraries().at("grpc"), ::testing::MatchesRegex("[0-9.]+"));
  EXPECT_THAT(info.libraries().at("protobuf"), ::testing::MatchesRegex("[0-9.]+"));
  EXPECT_EQ(ToTime(info.start_time()),
            absl::FromCivil(absl::CivilDay(2026, 1, 1), absl::UTCTimeZone()));
  EXPECT_THAT(info.devices(), ::testing::ElementsAre("cpu"));
  EXPECT_EQ(info.dtype(), "fp32");
  EXPECT_EQ(info.queued_jobs(), 2);
  EXPECT_EQ(info.running_jobs(), 1);
  EXPECT_EQ(info.queue_capacity(), 100);
}

TEST_F(TelemetryTest, TheFirstSampleComesAtOnceAndTheNextWhenItIsDue) {
  wan::v1::WatchDevicesRequest request;
  request.mutable_interval()->set_seconds(10);
  request.set_count(3);
  grpc::ClientContext context;
  const auto stream = telemetry_->WatchDevices(&context, request);
  wan::v1::WatchDevicesResponse round;
  ASSERT_TRUE(stream->Read(&round));
  ASSERT_THAT(round.devices(), SizeIs(1));
  EXPECT_EQ(round.devices(0).device(), "cpu");
  EXPECT_EQ(round.devices(0).cpu_percent(), 25);
  EXPECT_FALSE(round.devices(0).has_sm_activity_percent()) << "there is no GPU";
  const absl::Time first = ToTime(round.devices(0).time());
  // Not at 4 s, not at 8 s, but at 12 s.
  for (int i = 0; i < 3; ++i) clock_.Advance(absl::Seconds(4));
  ASSERT_TRUE(stream->Read(&round));
  EXPECT_EQ(ToTime(round.devices(0).time()) - first, absl::Seconds(12));
  // The rhythm is kept: the third is due at 20 s.
  clock_.Advance(absl::Seconds(8));
  ASSERT_TRUE(stream->Read(&round));
  EXPECT_EQ(ToTime(round.devices(0).time()) - first, absl::Seconds(20));
  EXPECT_FALSE(stream->Read(&round));
  EXPECT_TRUE(stream->Finish().ok());
}

TEST_F(TelemetryTest, EachStreamReadsItsOwnIntervals) {
  DeviceSample own;
  own.device = "cpu";
  own.cpu_percent = 60;
  engine_.monitor().SetReaderSamples({own});
  wan::v1::WatchDevicesRequest request;
  request.set_count(2);
  grpc::ClientContext context;
  const auto stream = telemetry_->WatchDevices(&context, request);
  wan::v1::WatchDevicesResponse round;
  ASSERT_TRUE(stream->Read(&round));
  EXPECT_EQ(round.devices(0).cpu_percent(), 25) << "the last second, whoever asks";
  clock_.Advance(absl::Seconds(1));
  ASSERT_TRUE(stream->Read(&round));
  EXPECT_EQ(round.devices(0).cpu_percent(), 60) << "the time between the two rounds";
}

TEST_F(TelemetryTest, TheIntervalIsASecondUnlessToldOtherwise) {
  grpc::ClientContext context;
  const auto stream = telemetry_->WatchDevices(&context, {});
  wan::v1::WatchDevicesResponse round;
  ASSERT_TRUE(stream->Read(&round));
  const absl::Time first = ToTime(round.devices(0).time());
  clock_.Advance(absl::Seconds(1));
  ASSERT_TRUE(stream->Read(&round));
  EXPECT_EQ(ToTime(round.devices(0).time()) - first, absl::Seconds(1));
  context.TryCancel();
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::CANCELLED);
}

TEST_F(TelemetryTest, BothViolationsAtOnce) {
  for (const int64_t nanos : {int64_t{0}, int64_t{99'999'999}, int64_t{-1}}) {
    wan::v1::WatchDevicesRequest request;
    request.mutable_interval()->set_nanos(static_cast<int>(nanos));
    request.set_count(-1);
    grpc::ClientContext context;
    const auto stream = telemetry_->WatchDevices(&context, request);
    wan::v1::WatchDevicesResponse round;
    EXPECT_FALSE(stream->Read(&round));
    EXPECT_THAT(ViolatedFields(stream->Finish()), UnorderedElementsAre("interval", "count"));
  }
  wan::v1::WatchDevicesRequest request;
  request.mutable_interval()->set_seconds(3601);
  grpc::ClientContext context;
  const auto stream = telemetry_->WatchDevices(&context, request);
  EXPECT_THAT(ViolatedFields(stream->Finish()), UnorderedElementsAre("interval"));
}

TEST_F(TelemetryTest, AStoppingServerEndsTheStream) {
  grpc::ClientContext context;
  const auto stream = telemetry_->WatchDevices(&context, {});
  wan::v1::WatchDevicesResponse round;
  ASSERT_TRUE(stream->Read(&round));
  std::thread stopper([this] { server_->Stop(); });
  EXPECT_FALSE(stream->Read(&round));
  const grpc::Status status = stream->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(ReasonOf(status), "SERVER_STOPPING");
  stopper.join();
}

TEST_F(TelemetryTest, WatchersThatGoAwayHarmNothing) {
  for (int i = 0; i < 10; ++i) {
    grpc::ClientContext context;
    const auto stream = telemetry_->WatchDevices(&context, {});
    wan::v1::WatchDevicesResponse round;
    ASSERT_TRUE(stream->Read(&round));
    context.TryCancel();
    clock_.Advance(absl::Seconds(1));
  }
  EXPECT_TRUE(IsServing());
}

}  // namespace
}  // namespace wan::server
