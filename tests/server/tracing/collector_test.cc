#include "server/tracing/collector.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/support/http_receiver.h"

namespace wan::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;

TEST(TracesUrlTest, ThePathIsAddedToABaseUrl) {
  const auto url = [](const std::string& endpoint) { return TracesUrl(endpoint).value_or("none"); };
  EXPECT_EQ(url("http://127.0.0.1:4318"), "http://127.0.0.1:4318/v1/traces");
  EXPECT_EQ(url("http://127.0.0.1:4318/"), "http://127.0.0.1:4318/v1/traces");
  EXPECT_EQ(url("http://[::1]:4318"), "http://[::1]:4318/v1/traces");
  EXPECT_EQ(url("https://tempo.example/otlp"), "https://tempo.example/otlp/v1/traces");
  EXPECT_EQ(url("https://tempo.example/otlp/v1/traces"), "https://tempo.example/otlp/v1/traces");
  EXPECT_EQ(url("HTTP://collector/v1/traces/"), "HTTP://collector/v1/traces");
}

TEST(TracesUrlTest, OthersAreRefused) {
  for (const char* const wrong : {"collector:4318", "localhost", "grpc://collector:4317", "http://",
                                  "http://a b/", "http://collector:99999", "http://collector\n/",
                                  "http://collector/?tenant=a", "http://collector/#a"}) {
    const absl::Status status = TracesUrl(wrong).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << wrong;
    EXPECT_THAT(std::string(status.message()), HasSubstr("otlp_endpoint: is '")) << wrong;
    EXPECT_THAT(std::string(status.message()), HasSubstr("http://127.0.0.1:4318")) << wrong;
  }
  const std::string message(TracesUrl("http://me:secret@collector/").status().message());
  EXPECT_THAT(message, HasSubstr("otlp_headers"));
  EXPECT_THAT(message, Not(HasSubstr("secret")));
}

class CollectorTest : public ::testing::Test {
 protected:
  ~CollectorTest() override { std::filesystem::remove(file_); }

  const std::string file_ = testing::TempDir() + "otlp_headers_" + std::to_string(getpid());
};

TEST_F(CollectorTest, HeadersComeFromAFile) {
  std::ofstream(file_)
      << "# of the tenant\nAuthorization: Bearer a:b \r\n\nX-Scope-OrgID:  video\n";
  const auto fields = ReadCollectorHeaders(file_);
  ASSERT_TRUE(fields.ok()) << fields.status();
  EXPECT_THAT(*fields,
              ElementsAre(Pair("Authorization", "Bearer a:b"), Pair("X-Scope-OrgID", "video")));
}

TEST_F(CollectorTest, AMessageTellsNothingOfTheirValues) {
  for (const char* const wrong :
       {"a: 1\nsecret", "b: 2\nb d: secret", "c: 3\nd: \x01secret", "e: 4\n:secret", "f: 5\ng:"}) {
    std::ofstream(file_) << wrong;
    const std::string message(ReadCollectorHeaders(file_).status().message());
    EXPECT_THAT(message, HasSubstr("otlp_headers: line 2 of " + file_)) << wrong;
    EXPECT_THAT(message, Not(HasSubstr("secret"))) << wrong;
  }
  EXPECT_THAT(std::string(ReadCollectorHeaders(file_ + "x").status().message()),
              HasSubstr("cannot be read"));
}

TEST_F(CollectorTest, PostsJsonWithTheHeaders) {
  support::HttpReceiver receiver;
  receiver.AnswerWith(503, "{}");
  const Collector collector(receiver.Url("/v1/traces"), {{"X-Scope-OrgID", "video"}}, "");
  const auto answer = collector.Post(R"({"resourceSpans": []})", {});
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->status, 503);
  EXPECT_EQ(answer->body, "{}");
  const auto post = receiver.Await(1)[0];
  EXPECT_EQ(post.path, "/v1/traces");
  EXPECT_EQ(post.body, R"({"resourceSpans": []})");
  EXPECT_EQ(post.fields.at("content-type"), "application/json");
  EXPECT_EQ(post.fields.at("x-scope-orgid"), "video");
}

}  // namespace
}  // namespace wan::server
