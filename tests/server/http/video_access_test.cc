// Who may use the OpenAI video API: roles, owners, the audit log, TLS, web pages.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "server/auth/method_rules.h"
#include "server/http/video_routes.h"
#include "tests/server/http/video_api_fixture.h"
#include "tests/support/certificates.h"
#include "tests/support/unread_calls.h"

namespace wan::server {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;

constexpr char kRequest[] = R"({"model": "m", "prompt": "a secret cat"})";

class VideoAccessTest : public VideoApiServerTest {
 protected:
  ServerConfig Config() const {
    ServerConfig config = HttpConfig();
    config.auth_tokens = TokenFile();
    return config;
  }

  Answer PostAs(const std::string& token) { return Post(kRequest, Bearer(token)); }
};

TEST_F(VideoAccessTest, EveryRouteAgainstEveryRole) {
  std::map<Role, std::string> tokens;
  for (const Role role : {Role::kViewer, Role::kUser, Role::kAdmin}) {
    tokens[role] = NewTokenOf(absl::StrCat("a-", std::string(NameOf(role))), role);
  }
  StartServing(Config());
  for (const std::string_view route : VideoRoutes()) {
    const MethodRule* const rule = FindMethodRule(route);
    ASSERT_NE(rule, nullptr) << route;
    const std::string method(route.substr(0, route.find(' ')));
    std::string path(route.substr(route.find(' ') + 1));
    if (const size_t at = path.find("{id}"); at != std::string::npos) {
      path.replace(at, 4, "video_0123");
    }
    if (rule->open || route == "GET /health") {
      EXPECT_EQ(Ask(method, path).status, 200) << route;
      continue;
    }
    const Answer nobody = Ask(method, path);
    EXPECT_EQ(nobody.status, 401) << route;
    EXPECT_EQ(nobody.Error("type"), "authentication_error") << route;
    EXPECT_EQ(nobody.Error("code"), "credentials_missing") << route;
    EXPECT_EQ(nobody.fields.at("www-authenticate"), "Bearer") << route;
    const Answer stranger = Ask(method, path, "", Bearer(NewToken()));
    EXPECT_EQ(stranger.status, 401) << route;
    EXPECT_EQ(stranger.Error("code"), "credentials_unknown") << route;
    for (const auto& [role, token] : tokens) {
      const Answer answer = Ask(method, path, "", Bearer(token));
      if (role < rule->least) {
        EXPECT_EQ(answer.status, 403) << route;
        EXPECT_EQ(answer.Error("type"), "permission_error") << route;
        EXPECT_EQ(answer.Error("code"), "role_required") << route;
      } else {
        EXPECT_NE(answer.status, 401) << route;
        EXPECT_NE(answer.status, 403) << route;
      }
    }
  }
}

TEST_F(VideoAccessTest, APrincipalHasOnePartOfBothFronts) {
  const std::string eve = NewTokenOf("eve", Role::kUser);
  const std::string alice = NewTokenOf("alice", Role::kUser);
  StartServing(Config());
  engine_.Hold("T5_Encoding");
  const std::string large =
      absl::StrCat(R"({"model": "m", "prompt": ")", std::string(60'000, 'x'), "\"}");
  for (int i = 0; i < 40; ++i) ASSERT_EQ(Post(large, Bearer(eve)).status, 200);
  ASSERT_EQ(Post(large, Bearer(alice)).status, 200);
  // Over gRPC she leaves as many answers untaken as she may have.
  support::UnreadCalls unread(server_->grpc_address().port, eve);
  for (int i = 0; i < 40; ++i) unread.Begin("/wan.v1.VideoGeneration/ListJobs", "");
  Answer answer;
  do {
    answer = Ask("GET", "/v1/videos?limit=100", "", Bearer(eve));
  } while (answer.status == 200);
  EXPECT_EQ(answer.status, 429);
  EXPECT_EQ(answer.Error("code"), "server_busy");
  EXPECT_THAT(answer.Error("message"),
              AllOf(HasSubstr("this caller has"), HasSubstr("bytes of answers under way")));
  EXPECT_EQ(Post(large, Bearer(eve)).status, 429) << "refused before anything is made";
  EXPECT_EQ(Ask("GET", "/v1/models", "", Bearer(eve)).status, 200) << "small";
  EXPECT_EQ(Ask("GET", "/v1/videos?limit=100", "", Bearer(alice)).status, 200);
  EXPECT_EQ(Post(large, Bearer(alice)).status, 200);
  engine_.Release("T5_Encoding");
}

TEST_F(VideoAccessTest, OthersVideosDoNotExist) {
  const std::string alice = NewTokenOf("alice", Role::kUser);
  const std::string bob = NewTokenOf("bob", Role::kUser);
  const std::string admin = NewTokenOf("root", Role::kAdmin);
  StartServing(Config());
  const Answer created = PostAs(alice);
  ASSERT_EQ(created.status, 200) << created.text;
  const std::string id = created.body["id"];
  const std::string path = "/v1/videos/" + id;
  const auto await = [&] {
    while (Ask("GET", path, "", Bearer(alice)).body["status"] != "completed") {
    }
  };
  await();
  // In the same words as for a video that nobody has.
  const auto words = [](const Answer& answer, const std::string& video) {
    std::string text = answer.text;
    const size_t at = text.find(video);
    return at == std::string::npos ? text : text.replace(at, video.size(), "VIDEO");
  };
  const std::string none = "video_" + std::string(id.size() - 6, '0');
  for (const std::string end : {"", "/content"}) {
    const Answer others = Ask("GET", path + end, "", Bearer(bob));
    EXPECT_EQ(others.status, 404);
    EXPECT_EQ(words(others, id),
              words(Ask("GET", "/v1/videos/" + none + end, "", Bearer(bob)), none));
  }
  EXPECT_EQ(Ask("DELETE", path, "", Bearer(bob)).status, 404);
  EXPECT_THAT(Ask("GET", "/v1/videos", "", Bearer(bob)).body["data"], SizeIs(0));
  EXPECT_EQ(Ask("GET", "/v1/videos?after=" + id, "", Bearer(bob)).Error("param"), "after");
  for (const std::string& token : {alice, admin}) {
    EXPECT_EQ(Ask("GET", path, "", Bearer(token)).status, 200);
    EXPECT_EQ(Ask("GET", path + "/content", "", Bearer(token)).status, 200);
    EXPECT_THAT(Ask("GET", "/v1/videos", "", Bearer(token)).body["data"], SizeIs(1));
  }
  EXPECT_EQ(Ask("DELETE", path, "", Bearer(admin)).status, 200);
  // Nor does anybody else learn that it was there.
  for (const std::string end : {"", "/content"}) {
    const Answer others = Ask("GET", path + end, "", Bearer(bob));
    EXPECT_EQ(others.status, 404);
    EXPECT_EQ(words(others, id),
              words(Ask("GET", "/v1/videos/" + none + end, "", Bearer(bob)), none));
    EXPECT_EQ(Ask("GET", path + end, "", Bearer(alice)).Error("code"), "expired");
  }
}

TEST_F(VideoAccessTest, TheAuditLogHasCallsAndRefusals) {
  const std::string alice = NewTokenOf("alice", Role::kUser);
  const std::string viewer = NewTokenOf("eve", Role::kViewer);
  StartServing(Config());
  const Answer created = PostAs(alice);
  const std::string job = JobOf(created.body["id"]);
  PostAs(viewer);
  Ask("GET", "/v1/videos", "", {{"Authorization", "Bearer x"}});
  StopWhileTimePasses();
  const std::string log = Log();
  EXPECT_THAT(log,
              HasSubstr(absl::StrCat(R"("principal":"alice","role":"user",)",
                                     R"("method":"POST /v1/videos","peer":"ipv4:127.0.0.1:)")));
  EXPECT_THAT(log, HasSubstr(absl::StrCat(R"("resource":")", job, R"(","code":"OK")")));
  EXPECT_THAT(log, HasSubstr(R"("code":"PERMISSION_DENIED","reason":"ROLE_REQUIRED")"));
  EXPECT_THAT(log, HasSubstr(R"("reason":"CREDENTIALS_UNKNOWN")"));
  EXPECT_THAT(log, Not(HasSubstr("secret cat")));
  EXPECT_THAT(log, Not(HasSubstr(alice)));
}

TEST_F(VideoAccessTest, WhoeverIsNotLetInSendsNoBody) {
  NewTokenOf("alice", Role::kUser);
  StartServing(Config());
  const Answer answer = Post(std::string(8 << 20, ' '));
  EXPECT_EQ(answer.status, 401);
}

// Any page in a browser could send these.
TEST_F(VideoAccessTest, WebPagesAreRefusedWhereNobodyIsAuthenticated) {
  StartServing(HttpConfig());
  const Answer page = Post(kRequest, {{"Origin", "https://example.com"}});
  EXPECT_EQ(page.status, 403);
  EXPECT_THAT(page.Error("message"), HasSubstr("answers no web page of another address"));
  const Answer other = Ask("GET", "/v1/videos", "", {{"Host", "attacker.example"}});
  EXPECT_EQ(other.status, 403);
  EXPECT_THAT(other.Error("message"), HasSubstr("Host must be localhost"));
  for (const char* const host :
       {"localhost", "127.0.0.1:8000", "[::1]", "[::1]:80", "localhost:1"}) {
    EXPECT_EQ(Ask("GET", "/v1/videos", "", {{"Host", host}}).status, 200) << host;
  }
}

TEST_F(VideoAccessTest, WithATokenTheOriginDoesNotMatter) {
  const std::string alice = NewTokenOf("alice", Role::kUser);
  StartServing(Config());
  auto fields = Bearer(alice);
  fields["Origin"] = "https://example.com";
  fields["Host"] = "wan.example.com";
  EXPECT_EQ(Ask("GET", "/v1/videos", "", fields).status, 200);
}

TEST_F(VideoAccessTest, TlsWithTheFilesAsTheyAre) {
  const support::CertificateAuthority first("first");
  const support::CertificateAuthority second("second");
  const support::CertificateAuthority clients("clients");
  const auto put = [&](const std::string& name, const std::string& text) {
    std::ofstream(folder_ + "/" + name + ".new", std::ios::binary) << text;
    std::filesystem::rename(folder_ + "/" + name + ".new", folder_ + "/" + name);
  };
  const auto issue = [&](const support::CertificateAuthority& authority) {
    const support::Certificate certificate = authority.Issue();
    put("cert.pem", certificate.certificate);
    put("key.pem", certificate.key);
  };
  issue(first);
  put("ca.pem", clients.certificate());
  ServerConfig config = HttpConfig();
  config.tls_cert = folder_ + "/cert.pem";
  config.tls_key = folder_ + "/key.pem";
  config.tls_client_ca = folder_ + "/ca.pem";
  auto started = Server::Start(config, {&engine_}, clock_, logger(), {});
  ASSERT_TRUE(started.ok()) << started.status();
  server_ = *std::move(started);
  support::CertificateOptions named;
  named.common_name = "carol";
  const support::Certificate carol = clients.Issue(named);
  const auto ask = [&](const std::string& ca, const support::Certificate& client) {
    return support::AskOverTls(HttpPort(), {ca, client, 0,
                                            "GET /v1/videos HTTP/1.1\r\nHost: x\r\n"
                                            "Connection: close\r\n\r\n"});
  };
  EXPECT_THAT(ask(first.certificate(), carol), StartsWith("HTTP/1.1 200"));
  EXPECT_EQ(ask(first.certificate(), {}), "") << "a connection without a client certificate";
  EXPECT_EQ(ask(second.certificate(), carol), "") << "another authority than the server's";
  issue(second);
  EXPECT_THAT(ask(second.certificate(), carol), StartsWith("HTTP/1.1 200"));
  // No way around it in plain text.
  EXPECT_FALSE(support::AskHttp(HttpPort(), {"GET", "/v1/videos", {}, {}}).ok());
  // The certificate's subject is the principal.
  EXPECT_THAT(
      support::AskOverTls(HttpPort(),
                          {second.certificate(), carol, 0,
                           absl::StrCat("POST /v1/videos HTTP/1.1\r\nHost: x\r\nContent-Length: ",
                                        sizeof(kRequest) - 1,
                                        "\r\nContent-Type: application/json\r\n"
                                        "Connection: close\r\n\r\n",
                                        kRequest)}),
      AllOf(StartsWith("HTTP/1.1 "), HasSubstr("video")));
  StopWhileTimePasses();
  EXPECT_THAT(Log(), HasSubstr("\"principal\":\"CN=carol\""));
}

}  // namespace
}  // namespace wan::server
