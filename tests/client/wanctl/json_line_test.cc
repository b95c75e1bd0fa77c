#include "client/wanctl/json_line.h"

#include <google/protobuf/util/json_util.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include "google/rpc/error_details.pb.h"
#include "tests/client/fakes/events.h"
#include "wan/v1/generation.pb.h"
#include "wan/v1/video_generation.pb.h"

namespace wan::client {
namespace {

using google::protobuf::util::JsonStringToMessage;
using google::protobuf::util::MessageDifferencer;

TEST(JsonLineTest, NamesAndOrderAreProtobufs) {
  wan::v1::Event event = fakes::Step(7, 3, 10, 1.25, 9);
  event.mutable_time()->set_seconds(1767225600);
  EXPECT_EQ(
      JsonLine(event),
      R"({"sequence":"7","time":"2026-01-01T00:00:00Z","job":"jobs/a1","attempt":1,)"
      R"("stepProgress":{"step":3,"total":10,"seconds":1.25,"etaSeconds":9,"expert":"only"}})");
  EXPECT_EQ(JsonLine(wan::v1::Event()), "{}");
}

TEST(JsonLineTest, AMessageWithLineBreaksStaysOneLineAndComesBack) {
  wan::v1::Job job;
  job.set_name("jobs/a1");
  job.mutable_request()->set_prompt("a\ncat \xe7\x8c\xab \"quoted\"");
  job.mutable_request()->mutable_labels()->insert({"k", "v"});
  job.mutable_error()->set_code(3);
  google::rpc::ErrorInfo info;
  info.set_reason("QUEUE_FULL");
  job.mutable_error()->add_details()->PackFrom(info);
  const std::string line = JsonLine(job);
  EXPECT_EQ(line.find('\n'), std::string::npos);
  wan::v1::Job back;
  ASSERT_TRUE(JsonStringToMessage(line, &back).ok()) << line;
  EXPECT_TRUE(MessageDifferencer::Equals(back, job)) << line;
}

TEST(JsonLineTest, DetailsWithoutAJsonFormAreLeftOut) {
  google::rpc::ErrorInfo info;
  info.set_reason("QUEUE_FULL");
  wan::v1::ListJobsResponse response;
  google::rpc::Status& error = *response.add_jobs()->mutable_error();
  error.set_message("full");
  auto* unknown = error.add_details();
  unknown->set_type_url("type.googleapis.com/google.rpc.QuotaFailure");
  unknown->set_value("\x0a\x01x");
  error.add_details()->PackFrom(info);
  auto* damaged = error.add_details();
  damaged->set_type_url("type.googleapis.com/google.rpc.RetryInfo");
  damaged->set_value("\xff");
  response.mutable_jobs(0)->mutable_request()->mutable_labels()->insert({"k", "v"});
  EXPECT_EQ(JsonLine(response),
            R"({"jobs":[{"request":{"labels":{"k":"v"}},"error":{"message":"full","details":[)"
            R"({"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"QUEUE_FULL"}]}}]})");
}

}  // namespace
}  // namespace wan::client
