#include "server/webhooks/webhook_message.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "absl/strings/escaping.h"
#include "engine/api/errors.h"
#include "server/conversion/convert.h"

namespace wan::server {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

wan::v1::Job EndedJob() {
  wan::v1::Job job;
  job.set_name("jobs/0123");
  job.set_state(wan::v1::JOB_STATE_COMPLETED);
  job.set_attempt(2);
  job.mutable_request()->set_model("m");
  job.mutable_request()->set_prompt("a secret cat");
  (*job.mutable_request()->mutable_labels())["team"] = "video";
  *job.mutable_create_time() = ToProto(absl::FromUnixSeconds(1'700'000'000));
  *job.mutable_start_time() = ToProto(absl::FromUnixSeconds(1'700'000'001));
  *job.mutable_end_time() = ToProto(absl::FromUnixSeconds(1'700'000'060));
  wan::v1::Artifact* const artifact = job.add_artifacts();
  artifact->set_name("jobs/0123/artifacts/video.mp4");
  artifact->set_kind(wan::v1::OUTPUT_KIND_MP4);
  artifact->set_size_bytes(7);
  artifact->set_sha256("ab");
  artifact->set_content_type("video/mp4");
  return job;
}

std::map<std::string, std::string> FieldsOf(const WebhookMessage& message) {
  return {message.fields.begin(), message.fields.end()};
}

TEST(WebhookMessageTest, Body) {
  const WebhookMessage message = MessageOf(EndedJob(), "s", absl::FromUnixSeconds(1'700'000'100));
  EXPECT_EQ(json::parse(message.body), json::parse(R"({
    "id": "msg_0123", "type": "job.completed", "timestamp": "2023-11-14T22:14:20+00:00",
    "data": {"job": "jobs/0123", "state": "completed", "model": "m", "labels": {"team": "video"},
             "attempt": 2, "create_time": "2023-11-14T22:13:20+00:00",
             "start_time": "2023-11-14T22:13:21+00:00", "end_time": "2023-11-14T22:14:20+00:00",
             "error": null,
             "artifacts": [{"name": "jobs/0123/artifacts/video.mp4", "kind": "OUTPUT_KIND_MP4",
                            "size_bytes": 7, "sha256": "ab", "content_type": "video/mp4"}]}})"));
}

TEST(WebhookMessageTest, AnErrorIsItsCodeAndReason) {
  wan::v1::Job job = EndedJob();
  job.set_state(wan::v1::JOB_STATE_FAILED);
  *job.mutable_error() = ToProto(OutOfMemoryError("about a secret cat in /srv/models"));
  const WebhookMessage failed = MessageOf(job, "s", absl::UnixEpoch());
  EXPECT_EQ(json::parse(failed.body)["type"], "job.failed");
  EXPECT_EQ(json::parse(failed.body)["data"]["error"],
            json({{"code", "RESOURCE_EXHAUSTED"}, {"reason", "OUT_OF_MEMORY"}}));
  EXPECT_THAT(failed.body, Not(HasSubstr("secret cat")));
  job.set_state(wan::v1::JOB_STATE_CANCELLED);
  EXPECT_EQ(json::parse(MessageOf(job, "s", absl::UnixEpoch()).body)["type"], "job.cancelled");
}

// The vector was computed with Python's hmac.
TEST(WebhookMessageTest, SignatureOfIdTimeAndBody) {
  const WebhookMessage message =
      MessageOf(EndedJob(), "0123456789abcdef01234567", absl::FromUnixSeconds(1'700'000'100));
  const auto fields = FieldsOf(message);
  EXPECT_EQ(fields.at("webhook-id"), "msg_0123");
  EXPECT_EQ(fields.at("webhook-timestamp"), "1700000100");
  EXPECT_EQ(fields.at("content-type"), "application/json");
  EXPECT_EQ(fields.at("webhook-signature"), "v1,fZs1/vdQNFAWSqK6gQZhSKT2MQ8xD33CempTARUk2Tc=");
  // Another attempt has the same ID and another signature.
  const auto later = FieldsOf(
      MessageOf(EndedJob(), "0123456789abcdef01234567", absl::FromUnixSeconds(1'700'000'101)));
  EXPECT_EQ(later.at("webhook-id"), "msg_0123");
  EXPECT_NE(later.at("webhook-signature"), fields.at("webhook-signature"));
}

TEST(WebhookMessageTest, SecretsAreReadFromFiles) {
  const std::string file = ::testing::TempDir() + "/webhook_secret";
  const auto read = [&](const std::string& text) {
    std::ofstream(file, std::ios::binary) << text;
    return ReadWebhookSecret(file);
  };
  const std::string secret(24, '\x01');
  const std::string encoded = "whsec_" + absl::Base64Escape(secret);
  EXPECT_EQ(*read(encoded), secret);
  EXPECT_EQ(*read(encoded + "\n"), secret);
  EXPECT_TRUE(read("whsec_" + absl::Base64Escape(std::string(64, 'x'))).ok());
  for (const std::string& wrong :
       {std::string(), std::string("whsec_"), absl::Base64Escape(secret), std::string("whsec_*"),
        "whsec_" + absl::Base64Escape(std::string(23, 'x')),
        "whsec_" + absl::Base64Escape(std::string(65, 'x')), encoded + "\n" + encoded}) {
    const auto status = read(wrong).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << wrong;
    EXPECT_THAT(std::string(status.message()), HasSubstr(file));
  }
  EXPECT_THAT(std::string(read(encoded + "SECRET").status().message()), Not(HasSubstr("SECRET")));
  EXPECT_TRUE(absl::IsNotFound(ReadWebhookSecret(file + "-none").status()));
}

}  // namespace
}  // namespace wan::server
