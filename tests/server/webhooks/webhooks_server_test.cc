// Webhooks of a whole server.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "google/rpc/error_details.pb.h"
#include "tests/server/rpc/server_fixture.h"
#include "tests/support/http_get.h"
#include "tests/support/http_receiver.h"
#include "tests/support/rpc_errors.h"

namespace wan::server {
namespace {

using nlohmann::json;
using support::DetailOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

class WebhooksServerTest : public ServerTest {
 protected:
  ServerConfig WebhookConfig() const {
    std::ofstream(folder_ + "/secret") << "whsec_" << absl::Base64Escape(std::string(32, 's'));
    ServerConfig config = DefaultConfig();
    config.webhook_hosts = {absl::StrCat("127.0.0.1:", receiver_.port())};
    config.webhook_secret = folder_ + "/secret";
    config.webhook_http = true;
    config.webhook_private = true;
    return config;
  }

  wan::v1::GenerationRequest RequestWith(const std::string& url) const {
    wan::v1::GenerationRequest request = SmallRequest();
    request.set_webhook_url(url);
    (*request.mutable_labels())["team"] = "video";
    return request;
  }

  // The violation that a request has.
  std::string ViolationOf(const std::string& url) {
    wan::v1::Job job;
    const grpc::Status status = CreateJob(RequestWith(url), &job);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << url;
    const auto detail = DetailOf<google::rpc::BadRequest>(status);
    if (!detail.has_value() || detail->field_violations_size() != 1) return "none";
    return absl::StrCat(detail->field_violations(0).field(), " ",
                        detail->field_violations(0).description());
  }

  support::HttpReceiver receiver_;
};

TEST_F(WebhooksServerTest, EveryEndIsReported) {
  StartServing(WebhookConfig());
  const wan::v1::Job made = AwaitEnd(MustCreate(RequestWith(receiver_.Url("/made"))).name());
  EXPECT_EQ(made.request().webhook_url(), receiver_.Url("/made"));
  const auto post = receiver_.Await(1)[0];
  EXPECT_EQ(post.path, "/made");
  const json body = json::parse(post.body);
  EXPECT_EQ(body["type"], "job.completed");
  EXPECT_EQ(body["data"]["job"], made.name());
  EXPECT_EQ(body["data"]["labels"]["team"], "video");
  EXPECT_EQ(body["data"]["artifacts"][0]["sha256"], made.artifacts(0).sha256());
  EXPECT_THAT(post.body, Not(HasSubstr(made.request().prompt())));
  EXPECT_THAT(post.fields.at("webhook-signature"), HasSubstr("v1,"));

  engine_.FailAt("VAE_Decoding", absl::InternalError("broken"));
  AwaitEnd(MustCreate(RequestWith(receiver_.Url("/failed"))).name());
  EXPECT_EQ(json::parse(receiver_.Await(2)[1].body)["type"], "job.failed");

  engine_.Hold("T5_Encoding");
  const std::string running = MustCreate(RequestWith(receiver_.Url("/cancelled"))).name();
  grpc::ClientContext context;
  wan::v1::CancelJobRequest cancel;
  cancel.set_name(running);
  wan::v1::Job job;
  EXPECT_TRUE(video_->CancelJob(&context, cancel, &job).ok());
  EXPECT_EQ(json::parse(receiver_.Await(3)[2].body)["type"], "job.cancelled");
  engine_.Release("T5_Encoding");

  // One without a URL is not reported.
  AwaitEnd(MustCreate().name());
  StopWhileTimePasses();
  EXPECT_THAT(receiver_.Await(3), SizeIs(3));
  EXPECT_THAT(Log(), HasSubstr("\"webhook delivered\""));
  EXPECT_THAT(Log(), Not(HasSubstr("/made")));
}

TEST_F(WebhooksServerTest, UrlsAreCheckedBeforeAJobIsMade) {
  StartServing(WebhookConfig());
  EXPECT_THAT(ViolationOf("https://example.com/"),
              HasSubstr("webhook_url names the host 'example.com'"));
  EXPECT_THAT(ViolationOf("ftp://127.0.0.1/"), HasSubstr("webhook_url must be a URL"));
  EXPECT_THAT(ViolationOf(receiver_.Url("/") + std::string(2048, 'x')),
              HasSubstr("webhook_url has "));
}

TEST_F(WebhooksServerTest, WithoutHostsEveryUrlIsRefused) {
  StartServing();
  EXPECT_EQ(ViolationOf("https://example.com/"),
            "webhook_url must be empty, because this server sends no webhooks");
}

TEST_F(WebhooksServerTest, WhatCannotBeUsedIsNoStart) {
  ServerConfig config = WebhookConfig();
  config.webhook_hosts = {"*.example.com"};
  EXPECT_THAT(
      std::string(Server::Start(config, {&engine_}, clock_, logger(), {}).status().message()),
      HasSubstr("webhook_hosts is '*.example.com'"));
  config = WebhookConfig();
  std::ofstream(config.webhook_secret) << "secret";
  EXPECT_THAT(
      std::string(Server::Start(config, {&engine_}, clock_, logger(), {}).status().message()),
      HasSubstr("webhook_secret: "));
}

TEST_F(WebhooksServerTest, ARestartDeliversWhatWasLeft) {
  receiver_.AnswerWith(503);
  const ServerConfig config = WebhookConfig();
  StartServing(config);
  AwaitEnd(MustCreate(RequestWith(receiver_.Url("/x"))).name());
  receiver_.Await(1);
  StopWhileTimePasses();
  const size_t before = receiver_.Await(1).size();
  server_.reset();
  receiver_.AnswerWith(200);
  StartServing(config);
  clock_.Advance(absl::Hours(2));
  const auto posts = receiver_.Await(before + 1);
  EXPECT_EQ(posts.front().fields.at("webhook-id"), posts.back().fields.at("webhook-id"));
  EXPECT_EQ(posts.front().body, posts.back().body);
}

}  // namespace
}  // namespace wan::server
