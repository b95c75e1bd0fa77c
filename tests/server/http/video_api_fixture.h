// A whole server with the OpenAI video API, and requests of it.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/server/auth/authenticated_server.h"
#include "tests/support/http_get.h"

namespace wan::server {

class VideoApiServerTest : public AuthenticatedServerTest {
 protected:
  struct Answer {
    int status = 0;
    std::map<std::string, std::string> fields;
    std::string text;
    nlohmann::json body;  // discarded if it is no JSON

    std::string Error(const char* field) const {
      const nlohmann::json& value = body["error"][field];
      return value.is_null() ? "null" : value.get<std::string>();
    }
  };

  ServerConfig HttpConfig() const {
    ServerConfig config = DefaultConfig();
    config.http_listen = HostPort{"127.0.0.1", 0};
    return config;
  }

  int HttpPort() const { return server_->http_address()->port; }

  Answer Ask(const std::string& method, const std::string& path, const std::string& body = {},
             const std::map<std::string, std::string>& fields = {}) const {
    const auto response = support::AskHttp(HttpPort(), {method, path, fields, body});
    EXPECT_TRUE(response.ok()) << method << " " << path << ": " << response.status();
    if (!response.ok()) return {};
    return {response->status, response->fields, response->body,
            nlohmann::json::parse(response->body, nullptr, /*allow_exceptions=*/false)};
  }

  Answer Post(const std::string& body, std::map<std::string, std::string> fields = {}) const {
    fields.emplace("Content-Type", "application/json");
    return Ask("POST", "/v1/videos", body, fields);
  }

  static std::map<std::string, std::string> Bearer(const std::string& token) {
    return {{"Authorization", "Bearer " + token}};
  }

  // Of a video that must be made.
  std::string MustPost(const std::string& body = R"({"model": "m", "prompt": "a cat"})") const {
    const Answer answer = Post(body);
    EXPECT_EQ(answer.status, 200) << answer.text;
    return answer.body.value("id", "");
  }

  static std::string JobOf(const std::string& video) {
    return "jobs/" + video.substr(std::string("video_").size());
  }

  // Makes a video and waits for its end.
  std::string MustMake(const std::string& body = R"({"model": "m", "prompt": "a cat"})") {
    std::string id = MustPost(body);
    AwaitEnd(JobOf(id));
    return id;
  }
};

}  // namespace wan::server
