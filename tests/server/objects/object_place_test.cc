#include "server/objects/object_place.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "server/objects/s3_object_store.h"

namespace wan::server {
namespace {

using ::testing::HasSubstr;

S3Options OptionsOf(const std::string& text, std::map<std::string, std::string> variables = {}) {
  const auto place = ParseObjectPlace(text);
  EXPECT_TRUE(place.ok()) << place.status();
  const auto options = S3OptionsOf(
      std::get<S3Place>(*place), "", [&](const char* name) { return variables[name]; }, nullptr);
  EXPECT_TRUE(options.ok()) << options.status();
  return *options;
}

TEST(ObjectPlaceTest, TakesWhatTheTextSays) {
  const auto place = ParseObjectPlace(
      "s3://videos/team/wan/?endpoint=https://h:443/&region=eu-west-1&path_style=false");
  ASSERT_TRUE(place.ok()) << place.status();
  const S3Place& s3 = std::get<S3Place>(*place);
  EXPECT_EQ(s3.bucket, "videos");
  EXPECT_EQ(s3.prefix, "team/wan/");
  EXPECT_EQ(s3.endpoint, "https://h");
  EXPECT_EQ(s3.region, "eu-west-1");
  EXPECT_EQ(s3.style, S3Place::Style::kHost);
  const auto folder = ParseObjectPlace("file:///mnt/wan");
  ASSERT_TRUE(folder.ok());
  EXPECT_EQ(std::get<FolderPlace>(*folder).folder, "/mnt/wan");
}

TEST(ObjectPlaceTest, TheEnvironmentFillsInTheRest) {
  const S3Options aws = OptionsOf("s3://videos");
  EXPECT_EQ(aws.endpoint, "https://s3.us-east-1.amazonaws.com");
  EXPECT_FALSE(aws.path_style);
  const S3Options own = OptionsOf(
      "s3://videos", {{"AWS_REGION", "eu-west-3"}, {"AWS_ENDPOINT_URL", "http://minio:9000"}});
  EXPECT_EQ(own.endpoint, "http://minio:9000");
  EXPECT_EQ(own.region, "eu-west-3");
  EXPECT_TRUE(own.path_style);
}

TEST(ObjectPlaceTest, SaysWhatIsWrong) {
  for (const char* const text :
       {"", "videos", "s3://", "s3://v", "s3://Videos/x", "s3://videos/../x",
        "s3://videos/x?endpoint", "s3://videos/x?region=", "s3://videos/x?path_style=yes",
        "s3://videos/x?colour=blue", "file://mnt", "file:///", "https://videos"}) {
    const auto place = ParseObjectPlace(text);
    EXPECT_TRUE(absl::IsInvalidArgument(place.status())) << text;
  }
  EXPECT_THAT(std::string(ParseObjectPlace("s3://videos/x?endpoint=h:1").status().message()),
              HasSubstr("has the endpoint 'h:1'; must be scheme, host and port"));
}

}  // namespace
}  // namespace wan::server
