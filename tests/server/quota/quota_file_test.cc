#include "server/quota/quota_file.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace wan::server {
namespace {

using testing::HasSubstr;

wan::v1::Quota QuotaOf(const std::string& limits) {
  const auto table = ParseQuotaFile("alice: " + limits, "quotas");
  EXPECT_TRUE(table.ok()) << table.status();
  return table.ok() ? table->Of("alice") : wan::v1::Quota();
}

std::string ErrorOf(const std::string& text) {
  const auto table = ParseQuotaFile(text, "quotas");
  EXPECT_EQ(table.status().code(), absl::StatusCode::kInvalidArgument) << text;
  return std::string(table.status().message());
}

TEST(QuotaFileTest, EachPrincipalHasItsOwnLineOrTheOneOfAllOthers) {
  const auto table = ParseQuotaFile(
      "# who may how much\n"
      "\n"
      "*: queued_jobs=20 calls_per_second=10\n"
      "alice: queued_jobs=100 running_jobs=1 device_seconds=36000.5 stored_bytes=50GiB\n"
      "CN=ops,O=Example: Films: unlimited\n",
      "quotas");
  ASSERT_TRUE(table.ok()) << table.status();
  const wan::v1::Quota& alice = table->Of("alice");
  EXPECT_EQ(alice.queued_jobs(), 100);
  EXPECT_EQ(alice.running_jobs(), 1);
  EXPECT_EQ(alice.device_seconds(), 36000.5);
  EXPECT_EQ(alice.stored_bytes(), uint64_t{50} << 30);
  EXPECT_FALSE(alice.has_calls_per_second());  // the line of '*' adds nothing to it
  EXPECT_EQ(table->Of("bob").queued_jobs(), 20);
  EXPECT_EQ(table->Of("").calls_per_second(), 10);
  EXPECT_FALSE(table->Of("CN=ops,O=Example: Films").has_queued_jobs());
  EXPECT_EQ(table->Of("*").queued_jobs(), 20);
}

TEST(QuotaFileTest, WithoutALineOfAllOthersTheyAreNotLimited) {
  const auto table = ParseQuotaFile("alice: queued_jobs=1", "quotas");
  ASSERT_TRUE(table.ok());
  EXPECT_FALSE(table->Of("bob").has_queued_jobs());
}

TEST(QuotaFileTest, EveryLimitAtItsEdges) {
  EXPECT_TRUE(QuotaOf("queued_jobs=0").has_queued_jobs());
  EXPECT_EQ(QuotaOf("queued_jobs=1000000").queued_jobs(), 1'000'000);
  EXPECT_EQ(QuotaOf("device_seconds=0").device_seconds(), 0);
  EXPECT_EQ(QuotaOf("device_seconds=1e9").device_seconds(), 1e9);
  EXPECT_EQ(QuotaOf("calls_per_second=0.001").calls_per_second(), 0.001);
  EXPECT_EQ(QuotaOf("calls_per_second=10000").calls_per_second(), 10'000);
  EXPECT_EQ(QuotaOf("stored_bytes=0").stored_bytes(), 0);
  EXPECT_EQ(QuotaOf("stored_bytes=8388607TiB").stored_bytes(), uint64_t{8388607} << 40);
  EXPECT_EQ(QuotaOf("stored_bytes=3KiB").stored_bytes(), 3 << 10);
  EXPECT_EQ(QuotaOf("stored_bytes=3MiB").stored_bytes(), 3 << 20);
  EXPECT_EQ(QuotaOf("stored_bytes=3MB").stored_bytes(), 3'000'000);
  EXPECT_EQ(QuotaOf("stored_bytes=1.5GiB").stored_bytes(), uint64_t{3} << 29);
  EXPECT_EQ(QuotaOf("device_seconds=10h").device_seconds(), 36'000);
  for (const std::string limit :
       {"queued_jobs=-1", "queued_jobs=1000001", "queued_jobs=1.5",
        "queued_jobs=", "running_jobs=x", "device_seconds=-1", "device_seconds=1000000001",
        "device_seconds=nan", "device_seconds=inf", "calls_per_second=0", "calls_per_second=0.0009",
        "calls_per_second=10001", "stored_bytes=-1", "stored_bytes=8388608TiB", "stored_bytes=1.5",
        "stored_bytes=1G"}) {
    const std::string name = limit.substr(0, limit.find('='));
    EXPECT_THAT(ErrorOf("alice: " + limit), HasSubstr(absl::StrCat("quotas:1: ", name, " is '")))
        << limit;
  }
}

TEST(QuotaFileTest, NamesEveryLineThatIsWrong) {
  const std::string error = ErrorOf(
      "alice\n"
      ": queued_jobs=1\n"
      "bob:\n"
      "carol: jobs=1\n"
      "dave: queued_jobs=1 queued_jobs=2\n"
      "erin: unlimited queued_jobs=1\n"
      "frank: unlimited\n"
      "frank: queued_jobs=1\n");
  EXPECT_THAT(error, HasSubstr("quotas:1: must be PRINCIPAL: LIMIT=VALUE"));
  EXPECT_THAT(error, HasSubstr("quotas:2: must be PRINCIPAL: LIMIT=VALUE"));
  EXPECT_THAT(error, HasSubstr("quotas:3: has no limits"));
  EXPECT_THAT(error, HasSubstr("quotas:4: 'jobs=1' is not a limit; must be LIMIT=VALUE with one of "
                               "queued_jobs, running_jobs, device_seconds, stored_bytes, "
                               "calls_per_second"));
  EXPECT_THAT(error, HasSubstr("quotas:5: queued_jobs is given twice; must be given once"));
  EXPECT_THAT(error, HasSubstr("quotas:6: 'unlimited' is not a limit"));
  EXPECT_THAT(error, HasSubstr("quotas:8: the principal 'frank' has a line already"));
  EXPECT_THAT(error, testing::Not(HasSubstr("quotas:7")));
}

TEST(QuotaFileTest, APrincipalHasAtMost1024Characters) {
  EXPECT_TRUE(ParseQuotaFile(std::string(1024, 'x') + ": unlimited", "quotas").ok());
  EXPECT_THAT(ErrorOf(std::string(1025, 'x') + ": unlimited"),
              HasSubstr("must have 1 to 1024 characters"));
}

}  // namespace
}  // namespace wan::server
