#include "server/rpc/status_conversion.h"

#include <gmock/gmock.h>
#include <grpcpp/support/status.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "engine/api/errors.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "server/conversion/errors.h"
#include "tests/support/rpc_errors.h"

namespace wan::server {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::wan::support::DetailOf;

TEST(StatusConversionTest, OkHasNoDetails) {
  EXPECT_TRUE(ToGrpcStatus(absl::OkStatus()).ok());
  EXPECT_EQ(ToGrpcStatus(absl::OkStatus()).error_details(), "");
}

TEST(StatusConversionTest, EveryCodeKeepsItsNumberMessageAndName) {
  for (int code = 1; code <= 16; ++code) {
    const absl::Status status(static_cast<absl::StatusCode>(code), "what happened");
    const grpc::Status sent = ToGrpcStatus(status);
    EXPECT_EQ(sent.error_code(), code);
    EXPECT_EQ(sent.error_message(), "what happened");
    google::rpc::Status decoded;
    ASSERT_TRUE(decoded.ParseFromString(sent.error_details()));
    EXPECT_EQ(decoded.code(), code);
    EXPECT_EQ(decoded.message(), "what happened");
    const auto info = DetailOf<google::rpc::ErrorInfo>(sent);
    ASSERT_TRUE(info.has_value());
    EXPECT_EQ(info->reason(), absl::StatusCodeToString(status.code()));
    EXPECT_EQ(info->domain(), "wanserve");
  }
}

TEST(StatusConversionTest, ReasonGoesIntoErrorInfo) {
  const grpc::Status sent =
      ToGrpcStatus(WithReason(absl::FailedPreconditionError("no"), "MODEL_NOT_READY"));
  EXPECT_EQ(DetailOf<google::rpc::ErrorInfo>(sent)->reason(), "MODEL_NOT_READY");
}

TEST(StatusConversionTest, EveryViolationIsListed) {
  const auto bad = DetailOf<google::rpc::BadRequest>(ToGrpcStatus(
      InvalidFields({{"width", "is 33, must be a multiple of 32"}, {"steps", "is 0"}})));
  ASSERT_TRUE(bad.has_value());
  ASSERT_EQ(bad->field_violations_size(), 2);
  EXPECT_EQ(bad->field_violations(0).field(), "width");
  EXPECT_EQ(bad->field_violations(0).description(), "is 33, must be a multiple of 32");
  EXPECT_EQ(bad->field_violations(1).field(), "steps");
}

TEST(StatusConversionTest, RetryInfoHasTheDelay) {
  const auto retry = DetailOf<google::rpc::RetryInfo>(
      ToGrpcStatus(WithRetryDelay(absl::ResourceExhaustedError("full"), absl::Milliseconds(2500))));
  ASSERT_TRUE(retry.has_value());
  EXPECT_EQ(retry->retry_delay().seconds(), 2);
  EXPECT_EQ(retry->retry_delay().nanos(), 500'000'000);
}

TEST(StatusConversionTest, ATrailerStaysWithinWhatClientsAccept) {
  for (const size_t bytes : {size_t{1}, size_t{1000}}) {
    std::vector<FieldViolation> violations;
    for (int i = 0; i < 400; ++i) {
      violations.push_back({absl::StrCat("labels[", i, "]"), std::string(bytes, 'x')});
    }
    const grpc::Status sent = ToGrpcStatus(InvalidFields(violations));
    // 8 KiB is the limit; base64 adds a third, percent-encoding may triple the message.
    EXPECT_LT(sent.error_details().size() * 4 / 3 + sent.error_message().size() * 3, 8000u);
    EXPECT_THAT(sent.error_message(), EndsWith("..."));
    const auto bad = DetailOf<google::rpc::BadRequest>(sent);
    ASSERT_TRUE(bad.has_value());
    const int kept = bad->field_violations_size() - 1;
    ASSERT_GT(kept, 0);
    EXPECT_EQ(bad->field_violations(0).field(), "labels[0]");
    EXPECT_EQ(bad->field_violations(kept).field(), "");
    EXPECT_THAT(bad->field_violations(kept).description(),
                HasSubstr(absl::StrCat("and ", 400 - kept, " more")));
  }
}

TEST(StatusConversionTest, ALongMessageIsCutBetweenCharacters) {
  std::string text;
  while (text.size() < 3000) text += "\xC3\xA4";  // a with diaeresis
  for (const std::string& message : {text, "x" + text}) {
    const grpc::Status sent = ToGrpcStatus(absl::InternalError(message));
    std::string kept = sent.error_message();
    ASSERT_THAT(kept, EndsWith("..."));
    kept.resize(kept.size() - 3);
    EXPECT_EQ(kept.size() % 2, message.size() % 2);
    EXPECT_EQ(message.substr(0, kept.size()), kept);
  }
}

}  // namespace
}  // namespace wan::server
