#include "server/conversion/message_texts.h"

#include <string>

#include "gtest/gtest.h"
#include "wan/v1/generation.pb.h"

namespace wan::server {
namespace {

constexpr char kLatin1[] = "caf\xe9";
constexpr char kMended[] = "caf\xef\xbf\xbd";

TEST(MessageTextsTest, AMessageOfTextsReadsBack) {
  wan::v1::Job job;
  job.set_name("jobs/a");
  (*job.mutable_request()->mutable_labels())["key"] = "caf\xc3\xa9";
  job.mutable_request()->set_image(kLatin1);  // bytes may be anything
  EXPECT_TRUE(ReadsBack(job));
  EXPECT_EQ(FieldNotUtf8(job), std::nullopt);
}

TEST(MessageTextsTest, NamesAndMendsAFieldWhereverItIs) {
  const auto expect_named = [](wan::v1::Job job, const std::string& field) {
    EXPECT_FALSE(ReadsBack(job)) << field;
    EXPECT_EQ(FieldNotUtf8(job), field);
    MendTexts(job);
    EXPECT_TRUE(ReadsBack(job)) << field;
    EXPECT_EQ(FieldNotUtf8(job), std::nullopt);
  };
  wan::v1::Job job;
  job.set_owner(kLatin1);
  expect_named(job, "owner");
  job.Clear();
  job.mutable_request()->set_request_id(kLatin1);
  expect_named(job, "request.request_id");
  job.Clear();
  (*job.mutable_request()->mutable_labels())["team"] = kLatin1;
  expect_named(job, "request.labels[team]");
  job.Clear();
  (*job.mutable_request()->mutable_labels())[kLatin1] = "video";
  expect_named(job, "request.labels[caf\\xe9]");
  job.Clear();
  job.add_artifacts()->set_name("jobs/a/artifacts/video.mp4");
  job.add_artifacts()->set_content_type(kLatin1);
  expect_named(job, "artifacts[1].content_type");
  job.Clear();
  job.mutable_provenance()->add_cpu_components(kLatin1);
  expect_named(job, "provenance.cpu_components[0]");
}

TEST(MessageTextsTest, MendingKeepsWhatIsRight) {
  wan::v1::Job job;
  job.set_name("jobs/a");
  job.set_owner(kLatin1);
  MendTexts(job);
  EXPECT_EQ(job.name(), "jobs/a");
  EXPECT_EQ(job.owner(), kMended);
}

}  // namespace
}  // namespace wan::server
