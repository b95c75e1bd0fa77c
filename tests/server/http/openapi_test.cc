// The description of the HTTP API against what the server does.
#include "server/http/openapi.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "server/http/video_request.h"
#include "server/http/video_routes.h"
#include "tests/server/http/video_api_fixture.h"

namespace wan::server {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

std::set<std::string> KeysOf(const json& object) {
  std::set<std::string> keys;
  for (const auto& [key, unused] : object.items()) keys.insert(key);
  return keys;
}

const json& Description() {
  static const auto* const description = new json(json::parse(kOpenApi));
  return *description;
}

const json& Schema(const std::string& name) { return Description()["components"]["schemas"][name]; }

std::set<std::string> PropertiesOf(const json& schema) { return KeysOf(schema["properties"]); }

// Calls `visit` with every object in the value.
template <typename Visit>
void ForEachObject(const json& value, const Visit& visit) {
  if (value.is_object()) visit(value);
  for (const json& part : value) {
    if (part.is_structured()) ForEachObject(part, visit);
  }
}

TEST(OpenApiTest, HasEveryRouteAndNoOther) {
  std::set<std::string> described;
  for (const auto& [path, operations] : Description()["paths"].items()) {
    for (const auto& [method, unused] : operations.items()) {
      described.insert(absl::StrCat(absl::AsciiStrToUpper(method), " ", path));
    }
  }
  const std::vector<std::string_view> routes = VideoRoutes();
  EXPECT_EQ(described, std::set<std::string>(routes.begin(), routes.end()));
}

TEST(OpenApiTest, HasEveryFieldOfARequestAndNoOther) {
  const std::vector<std::string_view> fields = VideoFieldNames();
  EXPECT_EQ(PropertiesOf(Schema("VideoRequest")),
            std::set<std::string>(fields.begin(), fields.end()));
}

TEST(OpenApiTest, IsConsistent) {
  EXPECT_EQ(Description()["openapi"], "3.1.0");
  EXPECT_THAT(std::string(Description()["info"]["version"]), Not(HasSubstr("@")));
  std::set<std::string> ids;
  ForEachObject(Description(), [&](const json& object) {
    if (const auto ref = object.find("$ref"); ref != object.end() && ref->is_string()) {
      const std::string target = *ref;
      EXPECT_TRUE(Description().contains(json::json_pointer(target.substr(1)))) << target;
    }
    if (object.contains("operationId")) {
      EXPECT_TRUE(ids.insert(object["operationId"]).second) << object["operationId"];
      EXPECT_TRUE(object["responses"].contains("default"));
    }
    if (object.contains("required") && object.contains("properties")) {
      for (const std::string name : object["required"]) {
        EXPECT_TRUE(object["properties"].contains(name)) << name;
      }
    }
  });
  // Every variable of a path is a parameter.
  for (const auto& [path, operations] : Description()["paths"].items()) {
    for (const json& operation : operations) {
      const json parameters = operation.value("parameters", json::array());
      const bool has_id = std::any_of(parameters.begin(), parameters.end(),
                                      [](const json& one) { return one["in"] == "path"; });
      EXPECT_EQ(has_id, path.find("{id}") != std::string::npos) << path;
    }
  }
}

class OpenApiServerTest : public VideoApiServerTest {};

TEST_F(OpenApiServerTest, DescribesTheAnswers) {
  StartServing(HttpConfig());
  const std::string id = MustMake();
  EXPECT_EQ(PropertiesOf(Schema("Video")), KeysOf(Ask("GET", "/v1/videos/" + id).body));
  EXPECT_EQ(PropertiesOf(Schema("VideoList")), KeysOf(Ask("GET", "/v1/videos").body));
  EXPECT_EQ(PropertiesOf(Schema("Health")), KeysOf(Ask("GET", "/health").body));
  EXPECT_EQ(PropertiesOf(Schema("Model")), KeysOf(Ask("GET", "/v1/models/m").body));
  EXPECT_EQ(PropertiesOf(Schema("Error")), KeysOf(Ask("GET", "/none").body));
  const json quote = Ask("POST", "/v1/videos/quote", R"({"prompt": "a cat"})",
                         {{"Content-Type", "application/json"}})
                         .body;
  EXPECT_EQ(PropertiesOf(Schema("Quote")), KeysOf(quote));
  const json server = Ask("GET", "/v1/server").body;
  const json& properties = Schema("Server")["properties"];
  EXPECT_EQ(PropertiesOf(Schema("Server")), KeysOf(server));
  EXPECT_EQ(PropertiesOf(properties["models"]["items"]), KeysOf(server["models"][0]));
  EXPECT_EQ(PropertiesOf(properties["models"]["items"]["properties"]["defaults"]),
            KeysOf(server["models"][0]["defaults"]));
  EXPECT_EQ(PropertiesOf(properties["groups"]["items"]), KeysOf(server["groups"][0]));
  EXPECT_EQ(PropertiesOf(properties["groups"]["items"]["properties"]["devices"]["items"]),
            KeysOf(server["groups"][0]["devices"][0]));
  // The events that the description names have these data.
  const std::string events = Ask("GET", "/v1/videos/" + id + "/events?after=0").text;
  const size_t at =
      events.find("event: progress\ndata: ") + std::string("event: progress\ndata: ").size();
  EXPECT_EQ(PropertiesOf(Schema("Progress")),
            KeysOf(json::parse(events.substr(at, events.find('\n', at) - at))));
}

TEST_F(OpenApiServerTest, EverybodyMayReadItWithoutWhatIsOff) {
  ServerConfig config = HttpConfig();
  config.auth_tokens = TokenFile();
  NewTokenOf("ann", Role::kUser);
  config.http_page = false;
  config.health_access = ServiceAccess::kOff;
  Start(config);
  const Answer answer = Ask("GET", "/openapi.json");
  ASSERT_EQ(answer.status, 200) << answer.text;
  EXPECT_FALSE(answer.body["paths"].contains("/"));
  EXPECT_FALSE(answer.body["paths"].contains("/health"));
  EXPECT_TRUE(answer.body["paths"].contains("/v1/videos"));
}

}  // namespace
}  // namespace wan::server
