#include "client/wanctl/text.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "client/error.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

namespace wan::client {
namespace {

TEST(TextTest, ControlCharactersDoNotPass) {
  EXPECT_EQ(Printable("a cat"), "a cat");
  EXPECT_EQ(Printable("猫 é"), "猫 é");
  EXPECT_EQ(Printable("a\x1b[31mb\r\nc\x7f"), "a?[31mb??c?");
  // U+009B, a control sequence introducer of one character; U+00A0 is none.
  EXPECT_EQ(Printable("a\xc2\x9b"
                      "b\xc2\xa0"),
            "a?b\xc2\xa0");
  EXPECT_EQ(Printable("\xc2"), "\xc2");
}

TEST(TextTest, Clock) {
  EXPECT_EQ(FormatClock(0), "0:00");
  EXPECT_EQ(FormatClock(8.6), "0:09");
  EXPECT_EQ(FormatClock(59.4), "0:59");
  EXPECT_EQ(FormatClock(59.6), "1:00");
  EXPECT_EQ(FormatClock(3599), "59:59");
  EXPECT_EQ(FormatClock(3723), "1:02:03");
  EXPECT_EQ(FormatClock(-5), "0:00");
  EXPECT_EQ(FormatClock(std::numeric_limits<double>::quiet_NaN()), "0:00");
  EXPECT_EQ(FormatClock(std::numeric_limits<double>::infinity()), "0:00");
}

TEST(TextTest, Bytes) {
  EXPECT_EQ(FormatBytes(0), "0 B");
  EXPECT_EQ(FormatBytes(1023), "1023 B");
  EXPECT_EQ(FormatBytes(1536), "1.5 KiB");
  EXPECT_EQ(FormatBytes(uint64_t{5} << 30), "5.0 GiB");
  EXPECT_EQ(FormatBytes(uint64_t{5000} << 40), "5000.0 TiB");
}

TEST(TextTest, Time) {
  google::protobuf::Timestamp time;
  EXPECT_EQ(FormatTime(time), "");
  time.set_seconds(1767225600);
  time.set_nanos(999'999'999);
  EXPECT_EQ(FormatTime(time), "2026-01-01 00:00:00Z");
}

TEST(TextTest, AnErrorWithEveryViolationOnItsOwnLine) {
  google::rpc::BadRequest bad_request;
  auto* violation = bad_request.add_field_violations();
  violation->set_field("width");
  violation->set_description("1281 is no multiple\nof 32");
  violation = bad_request.add_field_violations();
  violation->set_field("steps");
  violation->set_description("0 is below 1");
  google::rpc::RetryInfo retry;
  retry.mutable_retry_delay()->set_seconds(90);
  google::rpc::ErrorInfo info;
  info.set_reason("QUEUE_FULL");
  google::rpc::Status status;
  status.set_code(8);
  status.set_message("two things are wrong");
  for (const google::protobuf::Message* detail :
       std::initializer_list<const google::protobuf::Message*>{&bad_request, &retry, &info}) {
    status.add_details()->PackFrom(*detail);
  }
  EXPECT_EQ(FormatError(FromProto(status)),
            "RESOURCE_EXHAUSTED (QUEUE_FULL): two things are wrong\n"
            "  width: 1281 is no multiple?of 32\n"
            "  steps: 0 is below 1\n"
            "  try again in 1m30s");
}

TEST(TextTest, AMessageThatRepeatsTheViolationsIsNotShown) {
  google::rpc::BadRequest bad_request;
  for (const char* field : {"width", "steps"}) {
    auto* violation = bad_request.add_field_violations();
    violation->set_field(field);
    violation->set_description(field == std::string("width") ? "is 1281" : "is 0");
  }
  google::rpc::Status status;
  status.set_code(3);
  status.set_message("width: is 1281; steps: is 0");
  status.add_details()->PackFrom(bad_request);
  EXPECT_EQ(FormatError(FromProto(status)), "INVALID_ARGUMENT:\n  width: is 1281\n  steps: is 0");
  status.set_message("width: is 1281; and more");
  EXPECT_EQ(FormatError(FromProto(status)),
            "INVALID_ARGUMENT: width: is 1281; and more\n  width: is 1281\n  steps: is 0");
}

TEST(TextTest, AReasonThatIsTheCodeIsNotRepeated) {
  google::rpc::ErrorInfo info;
  info.set_reason("NOT_FOUND");
  google::rpc::Status status;
  status.set_code(5);
  status.set_message("no such job");
  status.add_details()->PackFrom(info);
  EXPECT_EQ(FormatError(FromProto(status)), "NOT_FOUND: no such job");
}

TEST(TextTest, Table) {
  EXPECT_EQ(FormatTable({{"Name"}, {"Bytes", Align::kRight}, {"Note"}},
                        {{"a", "1234567", "x"}, {"猫猫猫猫猫", "-", ""}}),
            "Name     Bytes  Note\n"
            "a      1234567  x\n"
            "猫猫猫猫猫        -\n");
  EXPECT_EQ(FormatTable({{"Name"}, {"Note"}}, {}), "Name  Note\n");
}

TEST(TextTest, AColumnWithoutNewsIsLeftOut) {
  const std::vector<Column> columns = {
      {"Kind", Align::kLeft, nullptr, "usual"}, {"Name"}, {"Note", Align::kLeft, nullptr, "-"}};
  EXPECT_EQ(FormatTable(columns, {{"usual", "a", "-"}, {"usual", "b", "-"}}), "Name\na\nb\n");
  EXPECT_EQ(FormatTable(columns, {{"usual", "a", "-"}, {"odd", "b", "-"}}),
            "Kind   Name\nusual  a\nodd    b\n");
  EXPECT_EQ(FormatTable(columns, {}), "Name\n");
}

}  // namespace
}  // namespace wan::client
