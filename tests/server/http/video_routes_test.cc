#include "server/http/video_routes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "server/http/video_query.h"

namespace wan::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(VideoRoutesTest, FindsRuleAndId) {
  const RouteMatch content = FindVideoRoute("GET", "/v1/videos/video_07/content");
  ASSERT_NE(content.route, nullptr);
  EXPECT_EQ(content.route->rule, "GET /v1/videos/{id}/content");
  EXPECT_EQ(content.route->action, VideoAction::kContent);
  EXPECT_EQ(content.id, "video_07");
  const RouteMatch list = FindVideoRoute("GET", "/v1/videos");
  ASSERT_NE(list.route, nullptr);
  EXPECT_EQ(list.route->action, VideoAction::kList);
  EXPECT_EQ(list.id, "");
}

TEST(VideoRoutesTest, HeadTakesTheRouteOfGet) {
  const RouteMatch content = FindVideoRoute("HEAD", "/v1/videos/video_07/content");
  ASSERT_NE(content.route, nullptr);
  EXPECT_EQ(content.route->rule, "GET /v1/videos/{id}/content");
  EXPECT_EQ(content.id, "video_07");
}

TEST(VideoRoutesTest, NamesTheMethodsOfAPathThatTakesOthers) {
  const RouteMatch match = FindVideoRoute("PUT", "/v1/videos/video_07");
  EXPECT_EQ(match.route, nullptr);
  EXPECT_THAT(match.methods, ElementsAre("GET", "HEAD", "DELETE"));
}

TEST(VideoRoutesTest, KnowsNoOtherPaths) {
  for (const char* path : {"/v1/videos/", "/v1/videos//content", "/v1/videos/a/b", "/v1/video", "",
                           "//", "/v1/videos/a/content/b"}) {
    const RouteMatch match = FindVideoRoute("GET", path);
    EXPECT_EQ(match.route, nullptr) << path;
    EXPECT_THAT(match.methods, IsEmpty()) << path;
  }
}

TEST(VideoRoutesTest, ThePageIsOneUnlessItIsOff) {
  EXPECT_EQ(FindVideoRoute("GET", "/").route->action, VideoAction::kPage);
  EXPECT_THAT(FindVideoRoute("POST", "/").methods, ElementsAre("GET", "HEAD"));
  EXPECT_THAT(FindVideoRoute("GET", "/", {.page = false}).methods, IsEmpty());
  EXPECT_EQ(VideoRoutes().size(), VideoRoutes({.page = false}).size() + 1);
}

TEST(VideoPageTest, HasDefaults) {
  const absl::StatusOr<VideoPage> page = ParseVideoPage("");
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_FALSE(page->after.has_value());
  EXPECT_EQ(page->limit, 20);
  EXPECT_TRUE(page->descending);
}

TEST(VideoPageTest, ReadsAllParameters) {
  const absl::StatusOr<VideoPage> page =
      ParseVideoPage("after=video_0123456789abcdef0123&limit=100&order=asc");
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_EQ(page->after, "jobs/0123456789abcdef0123");
  EXPECT_EQ(page->limit, 100);
  EXPECT_FALSE(page->descending);
}

TEST(VideoPageTest, NamesWhatIsWrong) {
  for (const auto& [query, parameter] :
       {std::pair{"limit=0", "limit"}, std::pair{"limit=101", "limit"},
        std::pair{"limit=ten", "limit"}, std::pair{"order=up", "order"},
        std::pair{"after=1", "after"}, std::pair{"page=2", "page"}}) {
    const absl::StatusOr<VideoPage> page = ParseVideoPage(query);
    ASSERT_TRUE(absl::IsInvalidArgument(page.status())) << query;
    EXPECT_THAT(std::string(page.status().message()), HasSubstr(parameter)) << query;
  }
}

}  // namespace
}  // namespace wan::server
