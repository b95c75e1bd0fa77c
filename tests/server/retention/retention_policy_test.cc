#include "server/retention/retention_policy.h"

#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/conversion/convert.h"

namespace wan::server {
namespace {

TEST(RetentionRuleTest, ReadsAgeBytesAndCountInAnyOrder) {
  const auto rule = ParseRetentionRule("1000,30d,200GiB");
  ASSERT_TRUE(rule.ok()) << rule.status();
  EXPECT_EQ(rule->age, absl::Hours(30 * 24));
  EXPECT_EQ(rule->bytes, int64_t{200} << 30);
  EXPECT_EQ(rule->count, 1000);
  EXPECT_TRUE(ParseRetentionRule("")->empty());
  EXPECT_EQ(ParseRetentionRule("90m")->age, absl::Minutes(90));
  EXPECT_EQ(ParseRetentionRule("5s")->age, absl::Seconds(5));
  EXPECT_EQ(ParseRetentionRule("7B")->bytes, 7);
  EXPECT_EQ(ParseRetentionRule("1.5GiB")->bytes, int64_t{3} << 29);
  EXPECT_EQ(ParseRetentionRule("1GB")->bytes, 1'000'000'000);
  EXPECT_EQ(ParseRetentionRule("1.5h")->age, absl::Minutes(90));
}

TEST(RetentionRuleTest, IsPrintedAsItIsRead) {
  for (const char* const text :
       {"", "30d", "12h", "90m", "61s", "200GiB", "1025KiB", "7B", "1000", "30d,200GiB,1000"}) {
    EXPECT_EQ(ToString(*ParseRetentionRule(text)), text);
  }
}

TEST(RetentionRuleTest, WhatIsNoRuleIsRefusedByName) {
  for (const char* const text :
       {"0", "-1", "30d,40d", "1GiB,2MiB", "5,6", "0.5s", "d", "1.5B", "1G", ",", "30d,", "36501d",
        "9223372036854775808", "8388608TiB", "all"}) {
    const absl::Status status = ParseRetentionRule(text).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(status.message()),
                testing::StartsWith("is '" + std::string(text) + "'; must be an age (30d)"));
  }
}

TEST(RetentionPolicyTest, AJobExpiresByTheAgeOfItsState) {
  RetentionPolicy policy;
  policy.completed.age = absl::Hours(1);
  policy.failed.count = 3;
  wan::v1::Job job;
  job.set_state(wan::v1::JOB_STATE_COMPLETED);
  policy.SetExpireTime(job);
  EXPECT_FALSE(job.has_expire_time()) << "it has no end_time";
  *job.mutable_end_time() = ToProto(absl::FromUnixSeconds(1000));
  policy.SetExpireTime(job);
  EXPECT_EQ(ToTime(job.expire_time()), absl::FromUnixSeconds(4600));
  job.set_state(wan::v1::JOB_STATE_FAILED);
  policy.SetExpireTime(job);
  EXPECT_FALSE(job.has_expire_time());
}

}  // namespace
}  // namespace wan::server
