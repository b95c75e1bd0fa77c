// Pages of other origins, as http_origins lists them.
#include "server/http/cross_origin.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "tests/server/http/video_api_fixture.h"

namespace wan::server {
namespace {

using ::testing::HasSubstr;

constexpr char kStudio[] = "https://studio.example.com";

class CrossOriginTest : public VideoApiServerTest {
 protected:
  // Serves with a listed page; `authenticated`: callers need a token.
  void Serve(bool authenticated = false) {
    ServerConfig config = HttpConfig();
    config.http_origins = {"http://127.0.0.1:5173", kStudio};
    if (authenticated) {
      config.auth_tokens = TokenFile();
      token_ = NewTokenOf("ann", Role::kUser);
    }
    StartServing(config);
  }

  static std::map<std::string, std::string> From(const std::string& origin) {
    return {{"Origin", origin}, {"Sec-Fetch-Site", "cross-site"}};
  }

  Answer Preflight(const std::string& path, const std::string& origin) const {
    std::map<std::string, std::string> fields = From(origin);
    fields["Access-Control-Request-Method"] = "POST";
    fields["Access-Control-Request-Headers"] = "authorization,content-type";
    return Ask("OPTIONS", path, "", fields);
  }

  static std::string Field(const Answer& answer, const char* name) {
    const auto found = answer.fields.find(name);
    return found == answer.fields.end() ? "" : found->second;
  }

  std::string token_;
};

TEST_F(CrossOriginTest, AListedPageMayAskFirst) {
  Serve(/*authenticated=*/true);
  const Answer answer = Preflight("/v1/videos", kStudio);
  EXPECT_EQ(answer.status, 204);
  EXPECT_EQ(Field(answer, "access-control-allow-origin"), kStudio);
  EXPECT_EQ(Field(answer, "access-control-allow-methods"), "POST, GET, HEAD");
  EXPECT_THAT(Field(answer, "access-control-allow-headers"), HasSubstr("Authorization"));
  EXPECT_EQ(Field(answer, "access-control-allow-credentials"), "");
  EXPECT_EQ(Field(answer, "vary"), "Origin");
  // Others are not told that they may.
  for (const char* const other :
       {"https://evil.example.com", "http://studio.example.com", "null"}) {
    EXPECT_EQ(Field(Preflight("/v1/videos", other), "access-control-allow-origin"), "") << other;
    EXPECT_NE(Preflight("/v1/videos", other).status, 204) << other;
  }
  EXPECT_EQ(Preflight("/none", kStudio).status, 404);
}

TEST_F(CrossOriginTest, AListedPageReadsAnswersAndErrors) {
  Serve(/*authenticated=*/true);
  std::map<std::string, std::string> fields = From(kStudio);
  const Answer refused = Ask("GET", "/v1/models", "", fields);
  EXPECT_EQ(refused.status, 401);
  EXPECT_EQ(Field(refused, "access-control-allow-origin"), kStudio);
  EXPECT_THAT(Field(refused, "access-control-expose-headers"), HasSubstr("WWW-Authenticate"));
  fields["Authorization"] = "Bearer " + token_;
  for (const char* const path : {"/v1/models", "/v1/videos/video_00", "/none"}) {
    const Answer answer = Ask("GET", path, "", fields);
    EXPECT_EQ(Field(answer, "access-control-allow-origin"), kStudio) << path;
    EXPECT_EQ(Field(answer, "access-control-allow-credentials"), "") << path;
  }
  // A page that is not listed has a token all the same, but cannot read the answer.
  fields["Origin"] = "https://evil.example.com";
  EXPECT_EQ(Field(Ask("GET", "/v1/models", "", fields), "access-control-allow-origin"), "");
}

TEST_F(CrossOriginTest, WithoutTokensTheListDecides) {
  Serve();
  EXPECT_EQ(Ask("GET", "/v1/models", "", From(kStudio)).status, 200);
  EXPECT_EQ(Ask("GET", "/v1/models", "", From("https://evil.example.com")).status, 403);
  // A name that somebody lets point to this machine does not become this machine.
  std::map<std::string, std::string> fields = From(kStudio);
  fields["Host"] = "wan.example.com";
  const Answer named = Ask("GET", "/v1/models", "", fields);
  EXPECT_EQ(named.status, 403);
  EXPECT_EQ(Field(named, "access-control-allow-origin"), kStudio);  // the page may read why
}

TEST_F(CrossOriginTest, WithoutAListNothingIsSaid) {
  StartServing(HttpConfig());
  const Answer answer = Ask("GET", "/v1/models");
  EXPECT_EQ(Field(answer, "vary"), "");
  EXPECT_EQ(Preflight("/v1/videos", kStudio).status, 403);
}

}  // namespace
}  // namespace wan::server
