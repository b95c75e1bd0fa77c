// The page in the browser: how it is answered, and that it uses only what the HTTP API has.
#include "server/http/page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "engine/api/errors.h"
#include "proto/enum_words.h"
#include "server/http/video_query.h"
#include "server/http/video_request.h"
#include "server/http/video_routes.h"
#include "tests/server/http/video_api_fixture.h"

namespace wan::server {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

// The first group of every match in the page.
std::set<std::string> AllInPage(const char* pattern) {
  const std::string page(kPageHtml);
  const std::regex expression(pattern);
  std::set<std::string> found;
  for (std::sregex_iterator at(page.begin(), page.end(), expression), end; at != end; ++at) {
    found.insert((*at)[1]);
  }
  return found;
}

std::set<std::string> KeysOf(const nlohmann::json& object) {
  std::set<std::string> keys;
  for (const auto& [key, value] : object.items()) keys.insert(key);
  return keys;
}

// Every name that the page reads of `object` must be one of its keys.
void ExpectAnswered(const char* object, const nlohmann::json& answer) {
  const std::set<std::string> read =
      AllInPage(absl::StrCat("\\b", object, "\\??\\.(\\w+)").c_str());
  EXPECT_THAT(read, Not(IsEmpty())) << object;
  for (const std::string& name : read) {
    EXPECT_THAT(KeysOf(answer), Contains(name)) << "the page reads " << object << "." << name;
  }
}

TEST(PageContentTest, CallsOnlyRoutesThatThereAre) {
  const std::set<std::string> calls = AllInPage(R"re("([A-Z]+ /[^"]*)")re");
  EXPECT_THAT(calls, SizeIs(12));
  for (const std::string& call : calls) {
    const size_t question = call.find('?');
    EXPECT_THAT(VideoRoutes(), Contains(call.substr(0, question)));
    if (question == std::string::npos) continue;
    HttpHead head;
    head.query =
        absl::StrReplaceAll(call.substr(question + 1), {{"{id}", "video_0123456789abcdef0123"}});
    EXPECT_TRUE(ParseVideoPage(head.query).ok() || ParseContentQuery(head.query).ok() ||
                ParseEventsQuery(head).ok())
        << call;
  }
  // All of them stand in that table, and all are made at one place.
  const std::string page(kPageHtml);
  EXPECT_EQ(page.find("fetch("), page.rfind("fetch("));
  EXPECT_THAT(page, Not(HasSubstr("XMLHttpRequest")));
}

TEST(PageContentTest, SendsOnlyFieldsThatTheServerReads) {
  std::set<std::string> names = AllInPage(R"re(<(?:input|textarea|select)[^>]* name="(\w+)")re");
  EXPECT_THAT(names, AllOf(Contains("prompt"), Contains("input_reference"), Contains("seed"),
                           Contains("seconds"), SizeIs(14)));
  names.merge(AllInPage(R"re(body\.set\("(\w+)")re"));
  EXPECT_THAT(names, AllOf(Contains("loras"), Contains("preview_interval"), SizeIs(18)));
  Form form;
  form.texts_only = true;
  for (const std::string& name : names) form.fields[name] = "";
  const auto request = ToGenerationRequest(std::move(form), std::nullopt, [](std::string_view) {
    return absl::NotFoundError("no such model");
  });
  for (const FieldViolation& violation : FieldViolationsOf(request.status())) {
    EXPECT_THAT(violation.description, Not(HasSubstr("is not a field"))) << violation.field;
  }
  // What 'again' fills in has a place in the form.
  for (const std::string& name : AllInPage(R"re((\w+): video\.(?!id\b))re")) {
    EXPECT_THAT(names, Contains(name));
  }
}

TEST(PageContentTest, OffersTheQualitiesOfTheContract) {
  EXPECT_THAT(AllInPage(R"re(<option>(\w+)</option>)re"),
              ::testing::UnorderedElementsAreArray(WordsOf<wan::v1::Quality>()));
}

TEST(PageContentTest, NeedsNothingFromElsewhere) {
  const std::string page(kPageHtml);
  for (const char* const outside : {"https://", " src=", "@import", "url(", "innerHTML", "eval("}) {
    EXPECT_THAT(page, Not(HasSubstr(outside)));
  }
  EXPECT_THAT(AllInPage(R"re(href="([^"]{0,5}))re"), ::testing::ElementsAre("data:"));
  // The browser would refuse these: the header allows the script and the style alone.
  EXPECT_THAT(AllInPage(R"re(<\w[^>]* (on\w+|style)=)re"), IsEmpty());
}

TEST(PageContentTest, EveryFieldHasALabel) {
  const std::set<std::string> labelled = AllInPage(R"re(<label for="([\w-]+)")re");
  const std::string page(kPageHtml);
  const std::regex controls(R"re(<(input|textarea|select)\b[^>]*>)re");
  int count = 0;
  for (std::sregex_iterator at(page.begin(), page.end(), controls), end; at != end; ++at, ++count) {
    const std::string control = at->str();
    std::smatch id;
    const bool named = std::regex_search(control, id, std::regex(R"re( id="([\w-]+)")re")) &&
                       labelled.contains(id[1]);
    EXPECT_TRUE(named || control.find("aria-label=") != std::string::npos) << control;
  }
  EXPECT_EQ(count, 17);
}

class PageTest : public VideoApiServerTest {};

TEST_F(PageTest, IsAnsweredWithWhatItMayDo) {
  StartServing(HttpConfig());
  const Answer page = Ask("GET", "/");
  EXPECT_EQ(page.status, 200);
  EXPECT_EQ(page.text, kPageHtml);
  EXPECT_EQ(page.fields.at("content-type"), "text/html; charset=utf-8");
  EXPECT_EQ(page.fields.at("x-content-type-options"), "nosniff");
  EXPECT_EQ(page.fields.at("x-frame-options"), "DENY");
  EXPECT_EQ(page.fields.at("cache-control"), "no-cache");
  EXPECT_THAT(page.fields.at("content-security-policy"),
              AllOf(HasSubstr("default-src 'none';"), HasSubstr("connect-src 'self';"),
                    HasSubstr("frame-ancestors 'none'"), Not(HasSubstr("unsafe"))));
  // Each hash is of a text of its own: 32 bytes in base64.
  std::smatch sources;
  const std::string policy = page.fields.at("content-security-policy");
  ASSERT_TRUE(std::regex_search(policy, sources,
                                std::regex("script-src 'sha256-([\\w+/]{43}=)'; "
                                           "style-src 'sha256-([\\w+/]{43}=)';")))
      << policy;
  EXPECT_NE(sources[1], sources[2]);
}

TEST_F(PageTest, TakesGetAndHead) {
  StartServing(HttpConfig());
  const Answer page = Ask("GET", "/");
  const Answer head = Ask("HEAD", "/");
  EXPECT_EQ(head.status, 200);
  EXPECT_EQ(head.text, "");
  EXPECT_EQ(head.fields.at("content-length"), absl::StrCat(kPageHtml.size()));
  EXPECT_EQ(head.fields.at("etag"), page.fields.at("etag"));
  const Answer known = Ask("GET", "/", "", {{"If-None-Match", page.fields.at("etag")}});
  EXPECT_EQ(known.status, 304);
  EXPECT_EQ(known.text, "");
  EXPECT_EQ(Ask("GET", "/", "", {{"If-None-Match", "\"other\""}}).status, 200);
  const Answer posted = Ask("POST", "/");
  EXPECT_EQ(posted.status, 405);
  EXPECT_EQ(posted.fields.at("allow"), "GET, HEAD");
}

TEST_F(PageTest, IsASetting) {
  ServerConfig config = HttpConfig();
  config.http_page = false;
  StartServing(config);
  const Answer page = Ask("GET", "/");
  EXPECT_EQ(page.status, 404);
  EXPECT_EQ(page.Error("code"), "unknown_url");
  EXPECT_THAT(page.Error("message"), Not(HasSubstr("GET /,")));
  EXPECT_EQ(Ask("POST", "/").status, 404);
  // Nor is any page let in.
  const std::string own = absl::StrCat("http://localhost:", HttpPort());
  EXPECT_EQ(Ask("GET", "/v1/models", "", {{"Host", own.substr(7)}, {"Origin", own}}).status, 403);
}

TEST_F(PageTest, NeedsNoTokenWhereItsCallsDo) {
  const std::string alice = NewTokenOf("alice", Role::kUser);
  ServerConfig config = HttpConfig();
  config.auth_tokens = TokenFile();
  StartServing(config);
  EXPECT_EQ(Ask("GET", "/").status, 200);
  EXPECT_EQ(Ask("GET", "/", "", Bearer("wrong")).status, 200);
  EXPECT_EQ(Ask("GET", "/v1/models").status, 401);
  EXPECT_EQ(Ask("GET", "/v1/models", "", Bearer(alice)).status, 200);
}

TEST_F(PageTest, MayCallTheServerThatItIsFrom) {
  StartServing(HttpConfig());
  for (const char* const name : {"localhost", "127.0.0.1", "[::1]"}) {
    const std::string host = absl::StrCat(name, ":", HttpPort());
    const Answer answer = Post(R"({"model": "m", "prompt": "a cat"})",
                               {{"Host", host}, {"Origin", "http://" + host}});
    EXPECT_EQ(answer.status, 200) << host << ": " << answer.text;
  }
}

TEST_F(PageTest, ReadsOnlyWhatIsAnswered) {
  StartServing(HttpConfig());
  const std::string id = MustMake();
  const nlohmann::json list = Ask("GET", "/v1/videos").body;
  ExpectAnswered("page", list);
  ExpectAnswered("video", list["data"][0]);
  const nlohmann::json server = Ask("GET", "/v1/server").body;
  ExpectAnswered("server", server);
  ExpectAnswered("model", server["models"][0]);
  ExpectAnswered("group", server["groups"][0]);
  ExpectAnswered("quote", Ask("POST", "/v1/videos/quote", R"({"model": "m", "prompt": "a cat"})",
                              {{"Content-Type", "application/json"}})
                              .body);
  // The page finds seeds in the text, because they have more digits than JavaScript keeps.
  EXPECT_TRUE(
      std::regex_search(Ask("GET", "/v1/videos/" + id).text, std::regex("\"seed\": ?\\d+")));
}

}  // namespace
}  // namespace wan::server
