// The stream of a video's events, over a real connection.
#include "server/http/video_events.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tests/server/http/video_api_fixture.h"
#include "tests/support/tcp_client.h"

namespace wan::server {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;

constexpr char kRequest[] =
    R"({"model": "m", "prompt": "a cat", "num_inference_steps": 3, "preview_interval": 1})";

struct Record {
  std::string id;
  std::string event;
  json data;

  friend bool operator==(const Record&, const Record&) = default;
};

// The records of a stream, without comments and `retry`.
std::vector<Record> RecordsOf(const std::string& text) {
  std::vector<Record> records;
  for (const absl::string_view block : absl::StrSplit(text, "\n\n")) {
    Record record;
    for (const absl::string_view line : absl::StrSplit(block, '\n')) {
      const std::pair<std::string, std::string> field =
          absl::StrSplit(line, absl::MaxSplits(": ", 1));
      if (field.first == "id") record.id = field.second;
      if (field.first == "event") record.event = field.second;
      if (field.first == "data") record.data = json::parse(field.second);
    }
    if (!record.event.empty()) records.push_back(std::move(record));
  }
  return records;
}

std::vector<std::string> StatesOf(const std::vector<Record>& records) {
  std::vector<std::string> states;
  for (const Record& record : records) {
    if (record.event == "status") states.push_back(record.data["status"]);
  }
  return states;
}

// A watcher that reads as the stream comes.
class Watcher {
 public:
  Watcher(int port, const std::string& video, const std::string& query = {},
          const std::string& fields = {})
      : client_(port) {
    EXPECT_TRUE(client_.Send(absl::StrCat("GET /v1/videos/", video, "/events", query,
                                          " HTTP/1.1\r\nHost: localhost\r\n", fields, "\r\n")));
  }

  // Everything up to and with `text`; everything if the stream ends before.
  std::string ReadTo(const std::string& text) { return client_.ReadTo(text); }
  std::string ReadToEnd() { return client_.ReadToEnd(); }

 private:
  support::TcpClient client_;
};

class VideoEventsTest : public VideoApiServerTest {
 protected:
  void SetUp() override { StartServing(HttpConfig()); }

  // Waits until the video has so many steps; watchers see them then.
  void AwaitStep(const std::string& video, int step) const {
    const std::string told = absl::StrCat("\"step\":", step, ",");
    Watcher(HttpPort(), video, "?after=0").ReadTo(told);
  }

  static std::string PathOf(const std::string& video, const std::string& query = {}) {
    return "/v1/videos/" + video + "/events" + query;
  }
};

TEST_F(VideoEventsTest, TellsAJobFromItsFirstEventToItsEnd) {
  const std::string id = MustMake(kRequest);
  const Answer answer = Ask("GET", PathOf(id, "?after=0"));
  ASSERT_EQ(answer.status, 200) << answer.text;
  EXPECT_EQ(answer.fields.at("content-type"), "text/event-stream");
  EXPECT_EQ(answer.fields.at("cache-control"), "no-store");
  EXPECT_THAT(answer.text, StartsWith("retry: 2000\n\n"));
  const std::vector<Record> records = RecordsOf(answer.text);
  EXPECT_THAT(StatesOf(records), ElementsAre("queued", "in_progress", "completed"));
  EXPECT_EQ(records.back().data, Ask("GET", "/v1/videos/" + id).body);
  EXPECT_EQ(records.back().id, absl::StrCat(MustGet(JobOf(id)).last_sequence()));
  std::vector<std::string> stages;
  std::vector<int> steps;
  for (const Record& record : records) {
    if (record.event != "progress") continue;
    EXPECT_EQ(record.data["steps"], 3);
    const std::string stage = record.data["stage"].is_null() ? "" : record.data["stage"];
    if (stages.empty() || stages.back() != stage) stages.push_back(stage);
    if (steps.empty() || steps.back() != record.data["step"]) steps.push_back(record.data["step"]);
  }
  EXPECT_THAT(stages, ElementsAre("waiting", "preparing", "encoding_text", "denoising", "decoding",
                                  "encoding_video"));
  EXPECT_THAT(steps, ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(records[1].data["queue_position"], 0);
}

TEST_F(VideoEventsTest, BeginsWithTheStateOfThisMoment) {
  engine_.Hold("Step_1_Inference");
  const std::string id = MustPost(kRequest);
  engine_.AwaitHeld("Step_1_Inference");
  AwaitStep(id, 1);
  Watcher watcher(HttpPort(), id);
  const std::vector<Record> first = RecordsOf(watcher.ReadTo("\"steps\":3}\n\n"));
  ASSERT_THAT(first, SizeIs(2));
  EXPECT_EQ(first[0].event, "status");
  EXPECT_EQ(first[0].data["status"], "in_progress");
  EXPECT_EQ(first[0].data["progress"], 33);
  EXPECT_EQ(first[0].id, "");  // the caller does not have all of this event yet
  EXPECT_EQ(first[1].event, "progress");
  EXPECT_EQ(first[1].data["progress"], 33);
  EXPECT_EQ(first[1].data["stage"], "denoising");
  EXPECT_EQ(first[1].data["step"], 1);
  engine_.Release("Step_1_Inference");
  const std::string rest = watcher.ReadToEnd();
  EXPECT_THAT(rest, AllOf(HasSubstr("\"status\":\"completed\""), EndsWith("\r\n0\r\n\r\n"),
                          Not(HasSubstr("event: preview"))));
}

TEST_F(VideoEventsTest, AnEndedJobHasItsStatusAlone) {
  const std::string id = MustMake(kRequest);
  const std::vector<Record> records = RecordsOf(Ask("GET", PathOf(id)).text);
  ASSERT_THAT(records, SizeIs(1));
  EXPECT_EQ(records[0].data, Ask("GET", "/v1/videos/" + id).body);
}

TEST_F(VideoEventsTest, ContinuesAfterEachEventWithoutAHoleAndWithoutTellingItTwice) {
  const std::string id = MustMake(kRequest);
  const std::vector<Record> all = RecordsOf(Ask("GET", PathOf(id, "?after=0")).text);
  for (size_t i = 0; i + 1 < all.size(); ++i) {
    if (all[i].id.empty()) continue;
    const std::vector<Record> rest(all.begin() + static_cast<std::ptrdiff_t>(i) + 1, all.end());
    EXPECT_EQ(RecordsOf(Ask("GET", PathOf(id, "?after=" + all[i].id)).text), rest) << all[i].id;
    // The browser sends this field beside the URL that it had in the beginning.
    EXPECT_EQ(
        RecordsOf(Ask("GET", PathOf(id, "?after=0"), "", {{"Last-Event-ID", all[i].id}}).text),
        rest)
        << all[i].id;
  }
  // After the end an EventSource is told to connect no more.
  const Answer end = Ask("GET", PathOf(id), "", {{"Last-Event-ID", all.back().id}});
  EXPECT_EQ(end.status, 204);
  EXPECT_EQ(end.text, "");
}

TEST_F(VideoEventsTest, PreviewsComeToWhomAsksForThem) {
  engine_.Hold("Step_0_Inference");
  const std::string id = MustPost(kRequest);
  engine_.AwaitHeld("Step_0_Inference");
  Watcher watcher(HttpPort(), id, "?previews=true");
  watcher.ReadTo("event: progress");
  engine_.Hold("Step_1_Inference");
  engine_.Release("Step_0_Inference");
  watcher.ReadTo("event: preview\n");
  EXPECT_EQ(
      watcher.ReadTo("\n\n"),
      absl::StrCat(R"(data: {"frames":["data:image/jpeg;base64,)",
                   absl::Base64Escape("JPEG of step 1"), R"(","data:image/jpeg;base64,)",
                   absl::Base64Escape("JPEG of step 1, middle"), R"(","data:image/jpeg;base64,)",
                   absl::Base64Escape("JPEG of step 1, last"), "\"],\"step\":1}\n\n"));
  engine_.Release("Step_1_Inference");
  watcher.ReadToEnd();
}

TEST_F(VideoEventsTest, HeartbeatsKeepAnIdleStreamOpen) {
  engine_.Hold("Step_1_Inference");
  const std::string id = MustPost(kRequest);
  engine_.AwaitHeld("Step_1_Inference");
  AwaitStep(id, 1);
  Watcher watcher(HttpPort(), id);
  watcher.ReadTo("\"steps\":3}\n\n");
  for (int i = 0; i < 2; ++i) {
    // The timer may not have been set yet, so time passes until it rings.
    std::jthread passing([this](const std::stop_token& stop) {
      while (!stop.stop_requested()) {
        clock_.Advance(absl::Seconds(15));
        std::this_thread::yield();
      }
    });
    EXPECT_THAT(watcher.ReadTo(": heartbeat\n\n"), EndsWith(": heartbeat\n\n"));
  }
  engine_.Release("Step_1_Inference");
  EXPECT_THAT(watcher.ReadToEnd(), HasSubstr("\"status\":\"completed\""));
}

TEST_F(VideoEventsTest, ACancelledVideoEndsTheStream) {
  engine_.Hold("Step_1_Inference");
  const std::string id = MustPost(kRequest);
  engine_.AwaitHeld("Step_1_Inference");
  Watcher watcher(HttpPort(), id);
  watcher.ReadTo("event: progress");
  std::thread cancel([&] { EXPECT_EQ(Ask("DELETE", "/v1/videos/" + id).status, 200); });
  EXPECT_THAT(watcher.ReadToEnd(),
              AllOf(HasSubstr("\"status\":\"failed\""), EndsWith("0\r\n\r\n")));
  cancel.join();
  EXPECT_EQ(Ask("GET", PathOf(id)).status, 404);
}

TEST_F(VideoEventsTest, AServerThatStopsEndsTheStreamSoThatTheCallerConnectsAgain) {
  engine_.Hold("Step_1_Inference");
  const std::string id = MustPost(kRequest);
  engine_.AwaitHeld("Step_1_Inference");
  AwaitStep(id, 1);
  Watcher watcher(HttpPort(), id);
  const std::string before = watcher.ReadTo("\"steps\":3}\n\n");
  StopWhileTimePasses();
  const std::string end = watcher.ReadToEnd();
  EXPECT_THAT(end, EndsWith("0\r\n\r\n"));
  EXPECT_THAT(end, Not(HasSubstr("\"status\":\"failed\"")));
  // What comes later is told to whoever connects again with the last id.
  const std::string last = RecordsOf(before + end).back().id;
  ASSERT_NE(last, "");
  engine_.Release("Step_1_Inference");
  StopServer();
  StartServing(HttpConfig());
  EXPECT_EQ(StatesOf(RecordsOf(Ask("GET", PathOf(id, "?after=" + last)).text)).back(), "completed");
}

TEST_F(VideoEventsTest, ManyWatchersHoldNoThread) {
  engine_.Hold("Step_1_Inference");
  const std::string id = MustPost(kRequest);
  engine_.AwaitHeld("Step_1_Inference");
  std::vector<std::unique_ptr<Watcher>> watchers;
  for (int i = 0; i < 200; ++i) {
    watchers.push_back(std::make_unique<Watcher>(HttpPort(), id));
    watchers.back()->ReadTo("event: progress");
  }
  EXPECT_EQ(Ask("GET", "/v1/videos/" + id).body["status"], "in_progress");
  engine_.Release("Step_1_Inference");
  for (const auto& watcher : watchers) {
    EXPECT_THAT(watcher->ReadToEnd(), HasSubstr("\"status\":\"completed\""));
  }
}

TEST_F(VideoEventsTest, HeadHasTheHeaderAlone) {
  engine_.Hold("Step_1_Inference");
  const std::string id = MustPost(kRequest);
  engine_.AwaitHeld("Step_1_Inference");
  const Answer head = Ask("HEAD", PathOf(id));
  EXPECT_EQ(head.status, 200);
  EXPECT_EQ(head.fields.at("content-type"), "text/event-stream");
  EXPECT_EQ(head.text, "");
  engine_.Release("Step_1_Inference");
}

TEST_F(VideoEventsTest, NamesWhatIsWrong) {
  EXPECT_EQ(Ask("GET", "/v1/videos/video_0123456789abcdef0123/events").Error("code"),
            "job_not_found");
  EXPECT_EQ(Ask("GET", "/v1/videos/nonsense/events").status, 404);
  const std::string id = MustMake(kRequest);
  for (const auto& [query, parameter] :
       {std::pair{"?after=-1", "after"}, std::pair{"?after=x", "after"},
        std::pair{"?previews=1", "previews"}, std::pair{"?preview=true", "preview"}}) {
    const Answer answer = Ask("GET", PathOf(id, query));
    EXPECT_EQ(answer.status, 400) << query;
    EXPECT_EQ(answer.Error("param"), parameter);
  }
  EXPECT_EQ(Ask("GET", PathOf(id), "", {{"Last-Event-ID", "one"}}).Error("param"), "Last-Event-ID");
}

class OwnedVideoEventsTest : public VideoApiServerTest {};

TEST_F(OwnedVideoEventsTest, OnlyTheOwnerWatches) {
  ServerConfig config = HttpConfig();
  config.auth_tokens = TokenFile();
  const std::string ann = NewTokenOf("ann", Role::kUser);
  const std::string bob = NewTokenOf("bob", Role::kUser);
  StartServing(config);
  auto fields = Bearer(ann);
  const Answer made = Post(kRequest, fields);
  ASSERT_EQ(made.status, 200) << made.text;
  const std::string path = "/v1/videos/" + made.body.value("id", "") + "/events";
  EXPECT_EQ(Ask("GET", path).status, 401);
  EXPECT_EQ(Ask("GET", path, "", Bearer(bob)).status, 404);
  EXPECT_THAT(Ask("GET", path, "", Bearer(ann)).text, HasSubstr("\"status\":\"completed\""));
}

}  // namespace
}  // namespace wan::server
