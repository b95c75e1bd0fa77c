// HTTP as other clients and proxies speak it: HEAD, conditions, chunks, and forms of request lines
// and parts that OpenAI's own client does not send.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/http/video_api.h"
#include "tests/server/http/video_api_fixture.h"
#include "tests/support/tcp_client.h"

namespace wan::server {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

class VideoProtocolTest : public VideoApiServerTest {
 protected:
  void SetUp() override { StartServing(HttpConfig()); }

  // What comes back for these bytes, to the end of the connection.
  std::string Raw(const std::string& bytes) const {
    support::TcpClient client(HttpPort());
    EXPECT_TRUE(client.Send(bytes));
    return client.ReadToEnd();
  }

  std::string RawHead(const std::string& method, const std::string& path,
                      const std::string& fields = {}) const {
    return Raw(absl::StrCat(method, " ", path, " HTTP/1.1\r\nHost: localhost\r\n", fields,
                            "Connection: close\r\n\r\n"));
  }

  // The answer to a request to make a video whose body comes in chunks of this size.
  std::string PostInChunks(std::string_view body, size_t size) const {
    std::string bytes =
        "POST /v1/videos HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        "Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n";
    for (; !body.empty(); body.remove_prefix(std::min(size, body.size()))) {
      const std::string_view chunk = body.substr(0, size);
      absl::StrAppend(&bytes, absl::Hex(chunk.size()), "\r\n", std::string(chunk), "\r\n");
    }
    return Raw(bytes + "0\r\n\r\n");
  }

  static std::string Part(const std::string& header, const std::string& content) {
    return absl::StrCat("--b\r\nContent-Disposition: form-data; ", header, "\r\n\r\n", content,
                        "\r\n");
  }

  // The answer to a form with these parts, besides model and prompt.
  Answer PostForm(const std::string& parts) const {
    return Ask("POST", "/v1/videos",
               absl::StrCat(Part("name=\"model\"", "m"), Part("name=\"prompt\"", "a cat"), parts,
                            "--b--\r\n"),
               {{"Content-Type", "multipart/form-data; boundary=b"}});
  }
};

// The header of an answer without the line that tells the moment.
std::string HeaderOf(const std::string& answer) {
  return answer.substr(0, answer.find("\r\n\r\n") + 4);
}

TEST_F(VideoProtocolTest, HeadIsAnsweredAsGetWithoutTheBody) {
  engine_.PadOutputs(3'000'000);
  const std::string id = MustMake();
  for (const std::string& path :
       {std::string("/v1/videos"), "/v1/videos/" + id, "/v1/videos/" + id + "/content",
        std::string("/v1/models"), std::string("/v1/models/m"), std::string("/v1/models/none"),
        std::string("/v1/videos/video_00"), std::string("/none")}) {
    const std::string get = RawHead("GET", path);
    const std::string head = RawHead("HEAD", path);
    EXPECT_EQ(head, HeaderOf(get)) << path;
  }
  // A range is for GET.
  EXPECT_THAT(RawHead("HEAD", "/v1/videos/" + id + "/content", "Range: bytes=0-1\r\n"),
              AllOf(StartsWith("HTTP/1.1 200"), HasSubstr("Content-Length: 3000000\r\n")));
  EXPECT_THAT(RawHead("PUT", "/v1/videos/" + id),
              AllOf(StartsWith("HTTP/1.1 405"), HasSubstr("Allow: GET, HEAD, DELETE\r\n")));
}

TEST_F(VideoProtocolTest, HeadTakesNoDownload) {
  // These have all places that there are for HTTP; HEAD needs none.
  engine_.PadOutputs(size_t{32} << 20);
  const std::string path = "/v1/videos/" + MustMake() + "/content";
  std::vector<support::TcpClient> readers;
  for (int i = 0; i < AdmissionLimits().callers.downloads / 8 * 7; ++i) {
    readers.emplace_back(HttpPort());
    ASSERT_TRUE(readers.back().Send(
        absl::StrCat("GET ", path, " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")));
    ASSERT_FALSE(readers.back().AwaitByteOrEnd());
  }
  EXPECT_THAT(RawHead("HEAD", path), StartsWith("HTTP/1.1 200"));
}

TEST_F(VideoProtocolTest, ContentThatTheCallerHasIsNotSentAgain) {
  const std::string path = "/v1/videos/" + MustMake() + "/content";
  const std::string tag = Ask("GET", path).fields.at("etag");
  for (const std::string& known :
       {tag, "W/" + tag, "\"other\", " + tag, "\"a,b\" , W/\"x\"," + tag, std::string("*")}) {
    for (const char* const method : {"GET", "HEAD"}) {
      const std::string answer =
          RawHead(method, path, absl::StrCat("If-None-Match: ", known, "\r\n"));
      EXPECT_THAT(answer, AllOf(StartsWith("HTTP/1.1 304"), HasSubstr("ETag: " + tag + "\r\n"),
                                EndsWith("\r\n\r\n"), Not(HasSubstr("Content-Length"))))
          << known;
    }
    // A range of it is not sent either.
    EXPECT_EQ(Ask("GET", path, "", {{"If-None-Match", known}, {"Range", "bytes=0-1"}}).status, 304);
  }
  EXPECT_THAT(
      RawHead("GET", path, absl::StrCat("If-None-Match: \"a\"\r\nIf-None-Match: ", tag, "\r\n")),
      StartsWith("HTTP/1.1 304"));
  const std::string bare = tag.substr(1, tag.size() - 2);
  for (const std::string& other : {std::string("\"other\""), bare, "\"" + bare + "x\"",
                                   std::string(), "\"x" + tag, std::string("**")}) {
    EXPECT_EQ(Ask("GET", path, "", {{"If-None-Match", other}}).status, 200) << other;
  }
}

TEST_F(VideoProtocolTest, ARequestLineMayHaveTheWholeUrl) {
  for (const char* const url : {"http://localhost/v1/models", "http://127.0.0.1:8000/v1/models",
                                "HTTP://LOCALHOST/v1/models", "https://localhost/v1/models",
                                "http://[::1]:8000/v1/models"}) {
    EXPECT_THAT(RawHead("GET", url), StartsWith("HTTP/1.1 200")) << url;
  }
  EXPECT_THAT(RawHead("GET", "http://localhost/v1/videos?limit=0"),
              HasSubstr("\"param\":\"limit\""));
  EXPECT_THAT(RawHead("PUT", "http://localhost"), HasSubstr("/ takes GET, HEAD only"));
  EXPECT_THAT(RawHead("PUT", "http://localhost?a=b"), HasSubstr("/ takes GET, HEAD only"));
  // Its host counts, and not the field: a server that authenticates nobody answers to no other.
  EXPECT_THAT(RawHead("GET", "http://wan.example.com/v1/models"), StartsWith("HTTP/1.1 403"));
  EXPECT_THAT(Raw("GET http://localhost/v1/models HTTP/1.1\r\nHost: wan.example.com\r\n"
                  "Connection: close\r\n\r\n"),
              StartsWith("HTTP/1.1 200"));
  for (const char* const wrong : {"http:///v1/models", "http://me@localhost/v1/models"}) {
    EXPECT_THAT(RawHead("GET", wrong), StartsWith("HTTP/1.1 400")) << wrong;
  }
  EXPECT_THAT(RawHead("GET", "ftp://localhost/v1/models"), StartsWith("HTTP/1.1 404"));
}

TEST_F(VideoProtocolTest, ABodyMayComeInChunks) {
  const std::string body = R"({"model": "m", "prompt": "a cat"})";
  for (const size_t size : {size_t{1}, size_t{7}, body.size()}) {
    EXPECT_THAT(PostInChunks(body, size), AllOf(StartsWith("HTTP/1.1 200"), HasSubstr("a cat")));
  }
  // One that is larger than any piece in which it is read.
  const std::string large = body + std::string(300'000, ' ');
  EXPECT_THAT(PostInChunks(large, 100'000), StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(Raw("GET /v1/models HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
                  "1\r\n \r\n0\r\n\r\n"
                  "GET /v1/models HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"),
              HasSubstr("}HTTP/1.1 200"));
  EXPECT_THAT(Raw("POST /v1/videos HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n"
                  "\r\nmuch\r\n"),
              AllOf(StartsWith("HTTP/1.1 400"), HasSubstr("chunk")));
  // Nothing of them is left among what the server works on.
  EXPECT_EQ(Ask("GET", "/v1/models").status, 200);
}

TEST_F(VideoProtocolTest, ABodyInChunksMayHaveItsBytesAndNoMore) {
  const std::string most(kMaxVideoBodyBytes - 2, ' ');
  EXPECT_THAT(PostInChunks("{" + most + "}", size_t{1} << 20),
              AllOf(StartsWith("HTTP/1.1 400"), HasSubstr("\"param\":\"prompt\"")));
  EXPECT_THAT(PostInChunks("{" + most + "} ", size_t{1} << 20),
              AllOf(StartsWith("HTTP/1.1 413"), HasSubstr("request_too_large"),
                    HasSubstr("Connection: close")));
  EXPECT_THAT(Raw(absl::StrCat("DELETE /v1/videos/video_00 HTTP/1.1\r\nHost: localhost\r\n"
                               "Transfer-Encoding: chunked\r\n\r\n10001\r\n",
                               std::string(0x10001, ' '), "\r\n0\r\n\r\n")),
              StartsWith("HTTP/1.1 413"));
}

TEST_F(VideoProtocolTest, ABodyWhoseEndIsNotCertainIsRefused) {
  const std::string next = "GET /v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n";
  for (const char* const coding :
       {"gzip", "identity", "xchunked", "\"chunked\"", "chunked, identity", "gzip, chunked", ""}) {
    const std::string answer = Raw(
        absl::StrCat("POST /v1/videos HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: ", coding,
                     "\r\n\r\n", next));
    EXPECT_THAT(answer, AllOf(StartsWith("HTTP/1.1 400"), HasSubstr("Transfer-Encoding"),
                              HasSubstr("Connection: close"), Not(HasSubstr("HTTP/1.1 200"))))
        << coding;
  }
  EXPECT_THAT(Raw("GET /v1/models HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n" + next),
              AllOf(StartsWith("HTTP/1.1 400"), HasSubstr("Host"), Not(HasSubstr("HTTP/1.1 200"))));
}

TEST_F(VideoProtocolTest, AnOriginWithoutAValueIsOne) {
  EXPECT_THAT(RawHead("GET", "/v1/models", "Origin:\r\n"), StartsWith("HTTP/1.1 403"));
}

TEST_F(VideoProtocolTest, AnImageIsAFileHoweverItsPartNamesIt) {
  const std::string png = "PNG one\xff";
  std::vector<std::string> parts = {
      "name=\"input_reference\"; filename*=UTF-8''b%c3%a4r.png",
      "name=\"input_reference\"; filename=\"a.png\"; filename*=UTF-8''a.png",
      "name=\"input_reference\"\r\nContent-Type: image/png",
      "name=\"input_reference\"\r\ncontent-type: Application/Octet-Stream",
      // As OpenAI's client sends (None, image).
      "name=\"input_reference\"",
  };
  for (const std::string& header : parts) {
    const Answer answer = PostForm(Part(header, png));
    ASSERT_EQ(answer.status, 200) << header << ": " << answer.text;
    AwaitEnd(JobOf(answer.body["id"]));
    EXPECT_EQ(*engine_.Generated().back().image, png) << header;
  }
}

TEST_F(VideoProtocolTest, AnEmptyImageIsNotTextToVideo) {
  const auto expect_refused = [](const Answer& answer, const std::string& what) {
    EXPECT_EQ(answer.status, 400) << what << ": " << answer.text;
    EXPECT_EQ(answer.Error("param"), "input_reference") << what;
    EXPECT_THAT(answer.Error("message"), HasSubstr("input_reference: is empty")) << what;
  };
  for (const char* const header :
       {"name=\"input_reference\"; filename=\"upload\"\r\nContent-Type: image/png",
        "name=\"input_reference\"; filename=\"\"\r\nContent-Type: application/octet-stream",
        "name=\"input_reference\"; filename*=UTF-8''a.png",
        "name=\"input_reference\"\r\nContent-Type: image/png", "name=\"input_reference\"",
        "name=\"input_reference[image_url]\""}) {
    expect_refused(PostForm(Part(header, "")), header);
  }
  expect_refused(PostForm(Part("name=\"input_reference[image_url]\"", "data:image/png;base64,")),
                 "data URL in a form");
  for (const char* const image :
       {R"("")", R"("data:image/png;base64,")", R"({"image_url": "data:image/png;base64,"})",
        R"({"image_url": "data:image/jpeg;base64, "})", R"({"image_url": ""})",
        R"({"image_url": null})", "{}", "[]"}) {
    expect_refused(
        Post(absl::StrCat(R"({"model": "m", "prompt": "a cat", "input_reference": )", image, "}")),
        image);
  }
  EXPECT_THAT(engine_.Generated(), IsEmpty());
}

TEST_F(VideoProtocolTest, AKeyThatCannotBeKeptIsRefused) {
  const std::string body = R"({"model": "m", "prompt": "a cat"})";
  for (const char* const key : {"caf\xe9", ""}) {
    const Answer answer = Post(body, {{"Idempotency-Key", key}});
    EXPECT_EQ(answer.status, 400) << answer.text;
    EXPECT_EQ(answer.Error("param"), "Idempotency-Key");
  }
  EXPECT_THAT(Raw(absl::StrCat("POST /v1/videos HTTP/1.1\r\nHost: localhost\r\n"
                               "Content-Type: application/json\r\nIdempotency-Key: a\r\n"
                               "Idempotency-Key: b\r\nConnection: close\r\nContent-Length: ",
                               body.size(), "\r\n\r\n", body)),
              AllOf(StartsWith("HTTP/1.1 400"), HasSubstr("Idempotency-Key: is given twice")));
}

TEST_F(VideoProtocolTest, UnknownParametersOfAQueryAreAllNamed) {
  const Answer wrong = Ask("GET", "/v1/videos?page=2&limits=3&size=1");
  EXPECT_EQ(wrong.status, 400);
  for (const char* const parameter :
       {"page: is not a parameter",
        "limits: is not a parameter of this request; did you mean limit?",
        "size: is not a parameter"}) {
    EXPECT_THAT(wrong.Error("message"), HasSubstr(parameter));
  }
}

}  // namespace
}  // namespace wan::server
