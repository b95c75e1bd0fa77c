// The content of a video while it is made.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "tests/server/http/video_api_fixture.h"
#include "tests/support/tcp_client.h"

namespace wan::server {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr char kRequest[] = R"({"model": "m", "prompt": "a cat", "seed": 5, "progressive": true})";
constexpr char kLastChunk[] = "0\r\n\r\n";

// A player that reads as the video comes.
class Player {
 public:
  Player(int port, const std::string& video) : client_(port) {
    EXPECT_TRUE(
        client_.Send(absl::StrCat("GET /v1/videos/", video, "/content?variant=live HTTP/1.1\r\n",
                                  "Host: localhost\r\nRange: bytes=0-\r\n\r\n")));
  }

  // Everything up to and with `text`; everything if the answer ends before.
  std::string ReadTo(const std::string& text) { return client_.ReadTo(text); }
  std::string ReadToEnd() { return client_.ReadToEnd(); }
  void SendNoMore() { client_.SendNoMore(); }

 private:
  support::TcpClient client_;
};

class LiveContentTest : public VideoApiServerTest {
 protected:
  void SetUp() override { StartServing(HttpConfig()); }

  // A video whose job stands in the stage.
  std::string MakeHeld(const std::string& stage, const std::string& body = kRequest) {
    engine_.Hold(stage);
    std::string id = MustPost(body);
    engine_.AwaitHeld(stage);
    return id;
  }

  static std::string PathOf(const std::string& video) {
    return "/v1/videos/" + video + "/content?variant=live";
  }
};

TEST_F(LiveContentTest, ThePlayerHasFramesWhileTheJobDecodes) {
  engine_.Hold("VAE_Decoding");
  const std::string id = MakeHeld("Step_1_Inference");
  Player early(HttpPort(), id);  // it waits
  engine_.Release("Step_1_Inference");
  engine_.AwaitHeld("VAE_Decoding");
  Player late(HttpPort(), id);
  for (Player* player : {&early, &late}) {
    const std::string header = player->ReadTo("\r\n\r\n");
    EXPECT_THAT(header, StartsWith("HTTP/1.1 200 "));
    EXPECT_THAT(header, HasSubstr("Content-Type: video/mp4; codecs=\"avc1.64000a\"\r\n"));
    EXPECT_THAT(header, HasSubstr("Transfer-Encoding: chunked\r\n"));
    EXPECT_THAT(header, HasSubstr("Cache-Control: no-store\r\n"));
    EXPECT_THAT(player->ReadTo("first of seed 5;"), HasSubstr("header of seed 5;"));
  }
  EXPECT_EQ(Ask("GET", "/v1/videos/" + id).body["status"], "in_progress");
  engine_.Release("VAE_Decoding");
  for (Player* player : {&early, &late}) {
    EXPECT_THAT(player->ReadToEnd(),
                AllOf(HasSubstr("VAE_Decoding of seed 5;"),
                      EndsWith(absl::StrCat("Video_Encoding of seed 5;\r\n", kLastChunk))));
  }
}

TEST_F(LiveContentTest, OnceTheJobHasEndedItIsTheFile) {
  const std::string id = MustMake(kRequest);
  const Answer live = Ask("GET", PathOf(id));
  const Answer file = Ask("GET", "/v1/videos/" + id + "/content");
  EXPECT_EQ(live.status, 200);
  EXPECT_EQ(live.text, "mp4 seed 5");
  EXPECT_EQ(live.fields, file.fields);
  EXPECT_EQ(Ask("GET", PathOf(id), "", {{"Range", "bytes=0-2"}}).text, "mp4");
}

TEST_F(LiveContentTest, TheFileIsThatOfAnOrdinaryRequest) {
  const std::string live = MustMake(kRequest);
  const std::string ordinary = MustMake(R"({"model": "m", "prompt": "a cat", "seed": 5})");
  const auto tag = [this](const std::string& id) {
    return Ask("GET", "/v1/videos/" + id + "/content").fields.at("etag");
  };
  EXPECT_EQ(tag(live), tag(ordinary));
}

TEST_F(LiveContentTest, AFailedJobCutsTheAnswerOff) {
  const std::string id = MakeHeld("VAE_Decoding");
  Player player(HttpPort(), id);
  player.ReadTo("first of seed 5;\r\n");
  engine_.FailAt("VAE_Decoding", absl::InternalError("out of luck"));
  engine_.Release("VAE_Decoding");
  EXPECT_EQ(player.ReadToEnd(), "") << "without the last chunk, which would say that it is whole";
  AwaitEnd(JobOf(id));
  EXPECT_EQ(Ask("GET", PathOf(id)).Error("code"), "video_not_completed");
}

TEST_F(LiveContentTest, ACancelCutsTheAnswerOff) {
  const std::string id = MakeHeld("VAE_Decoding");
  const std::string queued = MustPost(kRequest);
  Player player(HttpPort(), id);
  Player waiting(HttpPort(), queued);
  player.ReadTo("first of seed 5;\r\n");
  EXPECT_EQ(Ask("DELETE", "/v1/videos/" + queued).status, 200);
  EXPECT_THAT(waiting.ReadTo("\r\n\r\n"), StartsWith("HTTP/1.1 404 "));
  EXPECT_EQ(Ask("DELETE", "/v1/videos/" + id).status, 200);
  // A part may still come that was made before the engine heard of it.
  EXPECT_THAT(player.ReadToEnd(), Not(EndsWith(kLastChunk)));
}

TEST_F(LiveContentTest, OnlyOfAProgressiveRequest) {
  const std::string id = MakeHeld("VAE_Decoding", R"({"model": "m", "prompt": "a cat"})");
  const Answer answer = Ask("GET", PathOf(id));
  EXPECT_EQ(answer.status, 409);
  EXPECT_EQ(answer.Error("code"), "not_progressive");
  EXPECT_THAT(answer.Error("message"), StartsWith(id + " cannot be watched while it is made"));
  engine_.Release("VAE_Decoding");
  EXPECT_EQ(Ask("GET", PathOf("video_0123456789abcdef0123")).status, 404);
  const Answer wrong = Ask("GET", "/v1/videos/" + id + "/content?variant=lively");
  EXPECT_EQ(wrong.status, 400);
  EXPECT_THAT(wrong.Error("message"),
              HasSubstr("variant: is 'lively'; must be video, thumbnail, spritesheet or live"));
}

TEST_F(LiveContentTest, HeadHasTheHeaderAlone) {
  const std::string id = MakeHeld("VAE_Decoding");
  const Answer head = Ask("HEAD", PathOf(id));
  EXPECT_EQ(head.status, 200);
  EXPECT_EQ(head.fields.at("content-type"), "video/mp4; codecs=\"avc1.64000a\"");
  EXPECT_EQ(head.text, "");
  engine_.Release("VAE_Decoding");
}

// Players that do not read cost a piece each, and the job does not wait for them.
TEST_F(LiveContentTest, PlayersThatDoNotReadHoldUpNobody) {
  engine_.PadParts(size_t{4} << 20);
  const std::string id = MakeHeld("VAE_Decoding");
  std::vector<std::unique_ptr<Player>> players;
  for (int i = 0; i < 20; ++i) {
    players.push_back(std::make_unique<Player>(HttpPort(), id));
    players.back()->ReadTo("header of seed 5;");
  }
  engine_.Release("VAE_Decoding");
  EXPECT_EQ(AwaitEnd(JobOf(id)).state(), wan::v1::JOB_STATE_COMPLETED);
  EXPECT_THAT(players.front()->ReadToEnd(), EndsWith(kLastChunk));
}

TEST_F(LiveContentTest, ACallerThatLeavesWhileItWaitsIsForgotten) {
  const std::string id = MakeHeld("Step_1_Inference");
  Player player(HttpPort(), id);
  player.SendNoMore();
  // The timer may not have been set yet, so time passes until it rings.
  std::jthread passing([this](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      clock_.Advance(absl::Seconds(10));
      std::this_thread::yield();
    }
  });
  EXPECT_THAT(player.ReadTo("\r\n\r\n"), Not(HasSubstr(" 200 ")));
  engine_.Release("Step_1_Inference");
}

}  // namespace
}  // namespace wan::server
