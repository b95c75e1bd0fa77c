#include "client/error.h"

#include <gtest/gtest.h>

#include <string>

#include "google/rpc/error_details.pb.h"

namespace wan::client {
namespace {

google::rpc::Status WithEveryDetail() {
  google::rpc::BadRequest bad_request;
  auto* violation = bad_request.add_field_violations();
  violation->set_field("width");
  violation->set_description("1281 is no multiple of 32");
  violation = bad_request.add_field_violations();
  violation->set_field("num_frames");
  violation->set_description("120 is not 4n+1");
  google::rpc::RetryInfo retry;
  retry.mutable_retry_delay()->set_seconds(3);
  retry.mutable_retry_delay()->set_nanos(500'000'000);
  google::rpc::ErrorInfo info;
  info.set_reason("QUEUE_FULL");
  info.set_domain("wanserve");
  (*info.mutable_metadata())["capacity"] = "64";

  google::rpc::Status status;
  status.set_code(static_cast<int>(absl::StatusCode::kResourceExhausted));
  status.set_message("64 jobs wait");
  status.add_details()->PackFrom(bad_request);
  status.add_details()->PackFrom(retry);
  status.add_details()->PackFrom(info);
  return status;
}

ErrorDetails EveryDetail() {
  return {.violations = {{"width", "1281 is no multiple of 32"}, {"num_frames", "120 is not 4n+1"}},
          .retry_delay = absl::Milliseconds(3500),
          .reason = "QUEUE_FULL",
          .metadata = {{"capacity", "64"}}};
}

TEST(ErrorTest, DecodesTheTrailerOfACall) {
  const absl::Status status = FromTrailer(8, "64 jobs wait", WithEveryDetail().SerializeAsString());
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(status.message(), "64 jobs wait");
  EXPECT_EQ(DetailsOf(status), EveryDetail());
}

TEST(ErrorTest, DecodesTheStatusOfAFailedJob) {
  const absl::Status status = FromProto(WithEveryDetail());
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(DetailsOf(status), EveryDetail());
}

TEST(ErrorTest, TheCallsOwnCodeAndMessageHold) {
  const absl::Status status = FromTrailer(3, "wrong", WithEveryDetail().SerializeAsString());
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), "wrong");
  EXPECT_EQ(ToProto(status).code(), 3);
  EXPECT_EQ(ToProto(status).message(), "wrong");
}

TEST(ErrorTest, IgnoresADamagedTrailer) {
  const std::string whole = WithEveryDetail().SerializeAsString();
  for (const std::string& trailer :
       {std::string("\xff\xff\xff"), whole.substr(0, whole.size() - 5)}) {
    const absl::Status status = FromTrailer(13, "broken", trailer);
    EXPECT_EQ(status, absl::InternalError("broken"));
    EXPECT_EQ(DetailsOf(status), ErrorDetails());
  }
}

TEST(ErrorTest, IgnoresDetailsItDoesNotKnow) {
  google::rpc::Status proto = WithEveryDetail();
  proto.add_details()->set_type_url("type.googleapis.com/google.rpc.QuotaFailure");
  // Known by name, but no such message.
  auto* damaged = proto.add_details();
  damaged->set_type_url("type.googleapis.com/google.rpc.RetryInfo");
  damaged->set_value("\xff");
  EXPECT_EQ(DetailsOf(FromProto(proto)), EveryDetail());
}

TEST(ErrorTest, GoesThereAndBack) {
  const google::rpc::Status proto = WithEveryDetail();
  EXPECT_EQ(ToProto(FromProto(proto)).SerializeAsString(), proto.SerializeAsString());
}

TEST(ErrorTest, WithoutDetails) {
  EXPECT_TRUE(FromTrailer(0, "", "").ok());
  EXPECT_EQ(FromTrailer(5, "no such job", ""), absl::NotFoundError("no such job"));
  EXPECT_EQ(DetailsOf(absl::NotFoundError("no such job")), ErrorDetails());
  EXPECT_EQ(DetailsOf(absl::OkStatus()), ErrorDetails());
}

TEST(ErrorTest, ACodeThatIsNoneIsUnknown) {
  EXPECT_EQ(FromTrailer(99, "odd", "").code(), absl::StatusCode::kUnknown);
}

}  // namespace
}  // namespace wan::client
