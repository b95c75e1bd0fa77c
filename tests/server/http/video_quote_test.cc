// What a video would cost, what it did cost, and what the server has.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/server/http/video_api_fixture.h"

namespace wan::server {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class VideoQuoteTest : public VideoApiServerTest {
 protected:
  Answer Quote(const std::string& body, std::map<std::string, std::string> fields = {}) const {
    fields.emplace("Content-Type", "application/json");
    return Ask("POST", "/v1/videos/quote", body, fields);
  }
};

TEST_F(VideoQuoteTest, SaysWhatTheQuoteRpcSays) {
  engine_.AssumeRate(1e12);
  StartServing(HttpConfig());
  const std::string body = R"({"prompt": "a cat", "size": "96x64", "num_frames": 13, "fps": 12,
                               "num_inference_steps": 4, "seed": 7})";
  const Answer answer = Quote(body);
  ASSERT_EQ(answer.status, 200) << answer.text;
  wan::v1::QuoteRequest request;
  *request.mutable_request() = SmallRequest();
  request.mutable_request()->set_width(96);
  request.mutable_request()->set_height(64);
  request.mutable_request()->set_num_frames(13);
  request.mutable_request()->set_fps(12);
  request.mutable_request()->set_steps(4);
  grpc::ClientContext context;
  wan::v1::QuoteResponse told;
  ASSERT_TRUE(video_->Quote(&context, request, &told).ok());
  const json& quote = answer.body;
  EXPECT_EQ(quote["object"], "video.quote");
  EXPECT_EQ(quote["model"], "m");
  EXPECT_EQ(quote["size"], "96x64");
  EXPECT_EQ(quote["num_frames"], 13);
  EXPECT_EQ(quote["fps"], 12);
  EXPECT_EQ(quote["steps"], told.steps());
  ASSERT_TRUE(told.has_warm_time());
  EXPECT_EQ(quote["seconds"]["p50"], told.warm_time().p50_seconds());
  EXPECT_EQ(quote["seconds"]["p90"], told.warm_time().p90_seconds());
  EXPECT_EQ(quote["queue"]["jobs_ahead"], 0);
  EXPECT_EQ(quote["device_memory_bytes"].is_null(), !told.has_device_memory_bytes());
  EXPECT_EQ(quote["host_memory_bytes"].is_null(), !told.has_host_memory_bytes());
  // No video was made.
  EXPECT_EQ(Ask("GET", "/v1/videos").body["data"], json::array());
}

TEST_F(VideoQuoteTest, CountsTheJobsAhead) {
  StartServing(HttpConfig());
  engine_.Hold("Step_0_Inference");
  MustPost();
  engine_.AwaitHeld("Step_0_Inference");
  MustPost();
  EXPECT_EQ(Quote(R"({"prompt": "a cat"})").body["queue"]["jobs_ahead"], 1);
  engine_.Release("Step_0_Inference");
}

TEST_F(VideoQuoteTest, RefusesWhatCreatingAVideoRefuses) {
  StartServing(HttpConfig());
  for (const char* const body :
       {R"({"prompt": "a cat", "steps": 4})", R"({"prompt": "a cat", "size": "1x1"})",
        R"({"prompt": "a cat", "num_inference_steps": 0})", R"({"model": "m"})", "["}) {
    const Answer quoted = Quote(body);
    EXPECT_EQ(quoted.status, 400) << body;
    EXPECT_EQ(quoted.text, Post(body).text);
  }
}

TEST_F(VideoQuoteTest, AViewerMakesNoQuote) {
  ServerConfig config = HttpConfig();
  config.auth_tokens = TokenFile();
  const std::string viewer = NewTokenOf("vera", Role::kViewer);
  StartServing(config);
  EXPECT_EQ(Quote(R"({"prompt": "a cat"})", Bearer(viewer)).status, 403);
  EXPECT_EQ(Quote(R"({"prompt": "a cat"})").status, 401);
}

class VideoReportTest : public VideoApiServerTest {
 protected:
  void SetUp() override { StartServing(HttpConfig()); }
};

TEST_F(VideoReportTest, IsAPageOrAnyFormatOfWanctl) {
  const std::string id = MustMake(R"({"model": "m", "prompt": "a <b>cat</b>"})");
  const std::string path = "/v1/videos/" + id + "/report";
  const Answer page = Ask("GET", path);
  ASSERT_EQ(page.status, 200) << page.text;
  EXPECT_EQ(page.fields.at("content-type"), "text/html; charset=utf-8");
  EXPECT_THAT(page.fields.at("content-security-policy"), StartsWith("default-src 'none'"));
  EXPECT_THAT(page.text, AllOf(HasSubstr("<html"), HasSubstr("T5_Encoding"),
                               Not(HasSubstr("<b>cat")), Not(HasSubstr("<script"))));
  EXPECT_EQ(Ask("GET", path + "?format=html").text, page.text);
  EXPECT_THAT(Ask("GET", path + "?format=text").fields.at("content-type"),
              StartsWith("text/plain"));
  EXPECT_THAT(Ask("GET", path + "?format=markdown").text, HasSubstr("| "));
  const Answer data = Ask("GET", path + "?format=json");
  EXPECT_EQ(data.fields.at("content-type"), "application/json");
  EXPECT_EQ(data.body["runs"][0]["report"]["job"], JobOf(id));
}

TEST_F(VideoReportTest, NamesWhatIsWrong) {
  const std::string id = MustMake();
  const Answer wrong = Ask("GET", "/v1/videos/" + id + "/report?format=pdf");
  EXPECT_EQ(wrong.status, 400);
  EXPECT_EQ(wrong.Error("message"), "format: is 'pdf'; must be html, text, markdown or json");
  EXPECT_EQ(Ask("GET", "/v1/videos/video_0123456789abcdef0123/report").Error("code"),
            "job_not_found");
  engine_.Hold("Step_0_Inference");
  MustPost();
  engine_.AwaitHeld("Step_0_Inference");
  const std::string waiting = MustPost();
  const Answer early = Ask("GET", "/v1/videos/" + waiting + "/report");
  EXPECT_EQ(early.status, 404);
  EXPECT_EQ(early.Error("code"), "report_not_found");
  EXPECT_THAT(early.Error("message"), StartsWith(waiting));
  engine_.Release("Step_0_Inference");
}

class ServerObjectTest : public VideoApiServerTest {};

TEST_F(ServerObjectTest, HasModelsGroupsAndTheQueue) {
  StartServing(HttpConfig());
  engine_.Hold("Step_0_Inference");
  const std::string id = MustPost();
  engine_.AwaitHeld("Step_0_Inference");
  const Answer answer = Ask("GET", "/v1/server");
  ASSERT_EQ(answer.status, 200) << answer.text;
  const json& server = answer.body;
  EXPECT_EQ(server["object"], "server");
  EXPECT_NE(server["version"], "");
  EXPECT_EQ(server["serving"], true);
  EXPECT_EQ(server["queue"]["running"], 1);
  ASSERT_EQ(server["models"].size(), 1u);
  EXPECT_EQ(server["models"][0]["id"], "m");
  EXPECT_EQ(server["models"][0]["state"], "ready");
  EXPECT_EQ(server["models"][0]["loras"], json::array());
  EXPECT_EQ(server["models"][0]["defaults"]["fps"], 24);
  ASSERT_EQ(server["groups"].size(), 1u);
  EXPECT_EQ(server["groups"][0]["video"], id);
  ASSERT_EQ(server["groups"][0]["devices"].size(), 1u) << answer.text;
  EXPECT_TRUE(server["groups"][0]["devices"][0].contains("memory_total_bytes"));
  // Every viewer may see it, so it names no files.
  EXPECT_THAT(answer.text, Not(HasSubstr("synthetic:")));
  engine_.Release("Step_0_Inference");
}

TEST_F(ServerObjectTest, HealthIsOneWord) {
  StartServing(HttpConfig());
  const Answer serving = Ask("GET", "/health");
  EXPECT_EQ(serving.status, 200);
  EXPECT_EQ(serving.body, json({{"status", "ok"}}));
  StopServer();
  engine_.FailAt("Model_Initialization", absl::InternalError("no"));
  Start(HttpConfig());
  AwaitHealth(false);
  const Answer failed = Ask("GET", "/health");
  EXPECT_EQ(failed.status, 503);
  EXPECT_EQ(failed.body, json({{"status", "unavailable"}}));
}

TEST_F(ServerObjectTest, HealthIsAsPublicAsTheSettingSays) {
  ServerConfig config = HttpConfig();
  config.auth_tokens = TokenFile();
  const std::string viewer = NewTokenOf("vera", Role::kViewer);
  StartServing(config);
  EXPECT_EQ(Ask("GET", "/health").status, 200);
  EXPECT_EQ(Ask("GET", "/v1/server").status, 401);
  EXPECT_EQ(Ask("GET", "/v1/server", "", Bearer(viewer)).status, 200);
  StopServer();
  config.health_access = ServiceAccess::kOff;
  Start(config);
  EXPECT_EQ(Ask("GET", "/health", "", Bearer(viewer)).Error("code"), "unknown_url");
}

}  // namespace
}  // namespace wan::server
