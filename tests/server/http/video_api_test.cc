// The OpenAI video API over a real connection.
#include "server/http/video_api.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "engine/api/errors.h"
#include "tests/server/http/video_api_fixture.h"
#include "tests/server/jobs/full_disk.h"
#include "tests/support/tcp_client.h"

namespace wan::server {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Gt;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::StartsWith;

class VideoApiTest : public VideoApiServerTest {
 protected:
  void SetUp() override { StartServing(HttpConfig()); }

  // The ids of a list's videos.
  static std::vector<std::string> IdsOf(const json& list) {
    std::vector<std::string> ids;
    for (const json& video : list["data"]) ids.push_back(video["id"]);
    return ids;
  }
};

TEST_F(VideoApiTest, AVideoFromItsCreationToItsContent) {
  engine_.Hold("Step_2_Inference");
  const Answer created = Post(R"({"model": "m", "prompt": "a cat", "size": "96x64", "seed": 7,
                                  "num_inference_steps": 4, "num_frames": 13, "fps": 12,
                                  "quality": "high"})");
  ASSERT_EQ(created.status, 200) << created.text;
  EXPECT_THAT(created.fields.at("content-type"), StartsWith("application/json"));
  const std::string id = created.body["id"];
  EXPECT_THAT(id, StartsWith("video_"));
  EXPECT_EQ(created.body["object"], "video");
  EXPECT_EQ(created.body["model"], "m");
  EXPECT_EQ(created.body["prompt"], "a cat");
  EXPECT_EQ(created.body["size"], "96x64");
  EXPECT_EQ(created.body["seconds"], "1");
  EXPECT_EQ(created.body["seed"], 7);
  EXPECT_EQ(created.body["quality"], "high");
  EXPECT_EQ(created.body["created_at"], absl::ToUnixSeconds(clock_.Now()));
  EXPECT_TRUE(created.body["completed_at"].is_null());
  EXPECT_TRUE(created.body["error"].is_null());

  engine_.AwaitHeld("Step_2_Inference");
  const Answer running = Ask("GET", "/v1/videos/" + id);
  EXPECT_EQ(running.body["status"], "in_progress");
  EXPECT_EQ(running.body["progress"], 50);
  const Answer early = Ask("GET", "/v1/videos/" + id + "/content");
  EXPECT_EQ(early.status, 404);
  EXPECT_EQ(early.Error("code"), "video_not_completed");

  engine_.Release("Step_2_Inference");
  AwaitEnd(JobOf(id));
  const Answer ended = Ask("GET", "/v1/videos/" + id);
  EXPECT_EQ(ended.body["status"], "completed");
  EXPECT_EQ(ended.body["progress"], 100);
  EXPECT_EQ(ended.body["completed_at"], absl::ToUnixSeconds(clock_.Now()));

  const Answer content = Ask("GET", "/v1/videos/" + id + "/content?variant=video");
  EXPECT_EQ(content.status, 200);
  EXPECT_EQ(content.text, "mp4 seed 7");
  EXPECT_EQ(content.fields.at("content-type"), "video/mp4");
  EXPECT_EQ(content.fields.at("content-length"), "10");
  EXPECT_THAT(content.fields.at("content-disposition"), HasSubstr(id + ".mp4"));
  EXPECT_EQ(content.fields.at("etag"), "\"" + MustGet(JobOf(id)).artifacts(0).sha256() + "\"");
}

TEST_F(VideoApiTest, AnImageComesAsAFileOrInBase64) {
  const Answer file =
      Ask("POST", "/v1/videos",
          "--b\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nm\r\n"
          "--b\r\nContent-Disposition: form-data; name=\"prompt\"\r\n\r\na cat\r\n"
          "--b\r\nContent-Disposition: form-data; name=\"input_reference\"; filename=\"a.png\"\r\n"
          "Content-Type: image/png\r\n\r\nPNG one\r\n--b--\r\n",
          {{"Content-Type", "multipart/form-data; boundary=b"}});
  ASSERT_EQ(file.status, 200) << file.text;
  const Answer text = Post(absl::StrCat(
      R"({"model": "m", "prompt": "a cat", "input_reference": {"image_url": "data:image/png;base64,)",
      absl::Base64Escape("PNG two"), R"("}})"));
  ASSERT_EQ(text.status, 200) << text.text;
  AwaitEnd(JobOf(file.body["id"]));
  AwaitEnd(JobOf(text.body["id"]));
  ASSERT_EQ(engine_.Generated().size(), 2u);
  EXPECT_EQ(*engine_.Generated()[0].image, "PNG one");
  EXPECT_EQ(*engine_.Generated()[1].image, "PNG two");
}

TEST_F(VideoApiTest, AVideoMayBeginWithTheLatentsOfAnEarlierOne) {
  const std::string first =
      MustMake(R"({"model": "m", "prompt": "a cat", "seed": 7, "keep_latents": true})");
  const std::string latents =
      absl::StrCat(R"("strength": 0.5, "latents": {"video": ")", first, "\"}}");
  MustMake(absl::StrCat(R"({"model": "m", "prompt": "a dog", )", latents));
  EXPECT_EQ(*engine_.Generated().back().latents, "latents seed 7");
  EXPECT_EQ(engine_.Generated().back().strength, 0.5);
  const std::string plain = MustMake();
  const Answer refused = Post(absl::StrCat(
      R"({"model": "m", "prompt": "a dog", "strength": 1, "latents": {"video": ")", plain, "\"}}"));
  EXPECT_EQ(refused.status, 400);
  EXPECT_EQ(refused.Error("param"), "latents.video");
  EXPECT_THAT(refused.Error("message"), HasSubstr(absl::StrCat("latents.video: is ", JobOf(plain),
                                                               ", which has no latents")));
}

TEST_F(VideoApiTest, RangesOfTheContent) {
  const std::string path =
      "/v1/videos/" + MustMake(R"({"model": "m", "prompt": "a cat", "seed": 7})") + "/content";
  const Answer part = Ask("GET", path, "", {{"Range", "bytes=4-7"}});
  EXPECT_EQ(part.status, 206);
  EXPECT_EQ(part.text, "seed");
  EXPECT_EQ(part.fields.at("content-range"), "bytes 4-7/10");
  const Answer rest = Ask("GET", path, "", {{"Range", "bytes=9-"}});
  EXPECT_EQ(rest.status, 206);
  EXPECT_EQ(rest.text, "7");
  const Answer beyond = Ask("GET", path, "", {{"Range", "bytes=10-"}});
  EXPECT_EQ(beyond.status, 416);
  EXPECT_EQ(beyond.fields.at("content-range"), "bytes */10");
  EXPECT_EQ(beyond.Error("code"), "out_of_range");
  const std::string tag = part.fields.at("etag");
  EXPECT_EQ(Ask("GET", path, "", {{"Range", "bytes=4-7"}, {"If-Range", tag}}).status, 206);
  EXPECT_EQ(Ask("GET", path, "", {{"Range", "bytes=4-7"}, {"If-Range", "\"old\""}}).status, 200);
}

TEST_F(VideoApiTest, ALargeContentComesWhole) {
  engine_.PadOutputs(3'000'000);
  const Answer content = Ask("GET", "/v1/videos/" + MustMake() + "/content");
  EXPECT_EQ(content.status, 200);
  EXPECT_THAT(content.text, SizeIs(3'000'000));
  EXPECT_THAT(content.text, StartsWith("mp4 seed"));
}

TEST_F(VideoApiTest, AListComesInPages) {
  std::vector<std::string> made;
  for (int i = 0; i < 5; ++i) {
    // Some have one time, as jobs of a batch do.
    if (i == 1 || i == 4) clock_.Advance(absl::Seconds(1));
    made.insert(made.begin(), MustMake());
  }
  const Answer all = Ask("GET", "/v1/videos");
  EXPECT_EQ(all.status, 200);
  EXPECT_EQ(IdsOf(all.body), made);
  EXPECT_EQ(all.body["object"], "list");
  EXPECT_EQ(all.body["has_more"], false);
  EXPECT_EQ(all.body["first_id"], made.front());
  EXPECT_EQ(all.body["last_id"], made.back());
  for (const bool ascending : {false, true}) {
    if (ascending) std::reverse(made.begin(), made.end());
    std::vector<std::string> seen;
    std::string after;
    bool more = true;
    while (more) {
      const Answer page =
          Ask("GET", absl::StrCat("/v1/videos?limit=2&order=", ascending ? "asc" : "desc", after));
      ASSERT_EQ(page.status, 200) << page.text;
      for (const std::string& id : IdsOf(page.body)) seen.push_back(id);
      more = page.body["has_more"];
      after = "&after=" + page.body["last_id"].get<std::string>();
      ASSERT_EQ(page.body["data"].size(), more ? 2u : 1u);
    }
    EXPECT_EQ(seen, made);
  }
  const Answer behind = Ask("GET", "/v1/videos?order=asc&after=" + made.back());
  EXPECT_THAT(IdsOf(behind.body), ElementsAre());
  EXPECT_TRUE(behind.body["last_id"].is_null());
}

TEST_F(VideoApiTest, APageOfVeryLargeVideosEndsEarly) {
  // Each character has six bytes in JSON: a page has eight of these videos, and the next two.
  engine_.Hold("T5_Encoding");
  for (int i = 0; i < 10; ++i) {
    MustPost(
        nlohmann::json{{"model", "m"}, {"prompt", std::string(size_t{64} << 10, '\1')}}.dump());
  }
  const Answer first = Ask("GET", "/v1/videos?limit=100");
  ASSERT_EQ(first.status, 200);
  EXPECT_EQ(first.body["data"].size(), 8u);
  EXPECT_EQ(first.body["has_more"], true);
  const Answer second =
      Ask("GET", "/v1/videos?limit=100&after=" + first.body["last_id"].get<std::string>());
  EXPECT_EQ(second.body["data"].size(), 2u);
  EXPECT_EQ(second.body["has_more"], false);
  engine_.Release("T5_Encoding");
}

TEST_F(VideoApiTest, WrongPages) {
  const Answer wrong = Ask("GET", "/v1/videos?limit=101&order=up&after=x");
  EXPECT_EQ(wrong.status, 400);
  EXPECT_EQ(wrong.Error("param"), "after");
  EXPECT_THAT(wrong.Error("message"), HasSubstr("limit: must be a whole number from 1 to 100"));
  EXPECT_THAT(wrong.Error("message"), HasSubstr("order: must be asc or desc"));
  EXPECT_EQ(Ask("GET", "/v1/videos?limit=100").status, 200);
  EXPECT_EQ(Ask("GET", "/v1/videos?limit=0").status, 400);
  EXPECT_EQ(Ask("GET", "/v1/videos?after=video_00").Error("param"), "after");
  EXPECT_EQ(Ask("GET", "/v1/videos?page=2").Error("param"), "page");
}

TEST_F(VideoApiTest, DeleteRemovesAnEndedVideo) {
  const std::string id = MustMake();
  const Answer deleted = Ask("DELETE", "/v1/videos/" + id);
  EXPECT_EQ(deleted.status, 200) << deleted.text;
  EXPECT_EQ(deleted.body, json({{"id", id}, {"object", "video.deleted"}, {"deleted", true}}));
  const Answer gone = Ask("GET", "/v1/videos/" + id);
  EXPECT_EQ(gone.status, 404);
  EXPECT_EQ(gone.Error("code"), "expired");
  EXPECT_EQ(gone.Error("message"), id + " was removed");
  EXPECT_EQ(Ask("DELETE", "/v1/videos/" + id).status, 404);
}

TEST_F(VideoApiTest, DeleteCancelsWhatRunsAndWhatWaits) {
  engine_.Hold("T5_Encoding");
  const std::string running = MustPost();
  const std::string waiting = MustPost();
  engine_.AwaitHeld("T5_Encoding");
  for (const std::string& id : {waiting, running}) {
    const Answer deleted = Ask("DELETE", "/v1/videos/" + id);
    EXPECT_EQ(deleted.status, 200) << deleted.text;
    EXPECT_EQ(deleted.body["deleted"], true);
    EXPECT_EQ(Ask("GET", "/v1/videos/" + id).status, 404);
  }
  EXPECT_THAT(IdsOf(Ask("GET", "/v1/videos").body), ElementsAre());
}

TEST_F(VideoApiTest, DeleteOfAWaitingVideoTellsThatTheDiskRefusesIt) {
  engine_.Hold("T5_Encoding");
  MustPost();
  engine_.AwaitHeld("T5_Encoding");
  const std::string waiting = MustPost();
  {
    const FullDisk full;
    const Answer refused = Ask("DELETE", "/v1/videos/" + waiting);
    EXPECT_EQ(refused.status, 503) << refused.text;
    EXPECT_EQ(refused.Error("code"), "storage_unavailable");
    EXPECT_EQ(Ask("GET", "/v1/videos/" + waiting).body["status"], "queued");
  }
}

TEST_F(VideoApiTest, VideosThatFailedSayWhy) {
  engine_.FailAt("VAE_Decoding", OutOfMemoryError("1 GiB more is needed"));
  const std::string failed = MustMake();
  const Answer answer = Ask("GET", "/v1/videos/" + failed);
  EXPECT_EQ(answer.body["status"], "failed");
  EXPECT_EQ(answer.body["error"]["code"], "out_of_memory");
  EXPECT_THAT(answer.body["error"]["message"].get<std::string>(), HasSubstr("1 GiB more"));
  engine_.Hold("T5_Encoding");
  const std::string cancelled = MustPost();
  engine_.AwaitHeld("T5_Encoding");
  grpc::ClientContext context;
  wan::v1::CancelJobRequest cancel;
  cancel.set_name(JobOf(cancelled));
  wan::v1::Job job;
  ASSERT_TRUE(video_->CancelJob(&context, cancel, &job).ok());
  AwaitEnd(JobOf(cancelled));
  const Answer ended = Ask("GET", "/v1/videos/" + cancelled);
  EXPECT_EQ(ended.body["status"], "failed");
  EXPECT_EQ(ended.body["error"]["code"], "cancelled");
  EXPECT_EQ(Ask("GET", "/v1/videos/" + cancelled + "/content").status, 404);
}

TEST_F(VideoApiTest, AnIdempotencyKeyMakesOneVideo) {
  const std::string body = R"({"model": "m", "prompt": "a cat"})";
  const Answer first = Post(body, {{"Idempotency-Key", "k"}});
  const Answer second = Post(body, {{"Idempotency-Key", "k"}});
  EXPECT_EQ(first.body["id"], second.body["id"]);
  const Answer other = Post(R"({"model": "m", "prompt": "a dog"})", {{"Idempotency-Key", "k"}});
  EXPECT_EQ(other.status, 409);
  EXPECT_EQ(other.Error("code"), "request_id_reused");
  EXPECT_EQ(other.fields.at("x-should-retry"), "false");
  const Answer long_key = Post(body, {{"Idempotency-Key", std::string(129, 'k')}});
  EXPECT_EQ(long_key.status, 400);
  EXPECT_EQ(long_key.Error("param"), "Idempotency-Key");
}

TEST_F(VideoApiTest, Models) {
  const Answer models = Ask("GET", "/v1/models");
  EXPECT_EQ(models.status, 200);
  ASSERT_THAT(models.body["data"], SizeIs(1));
  EXPECT_EQ(models.body["data"][0]["id"], "m");
  EXPECT_EQ(models.body["data"][0]["object"], "model");
  EXPECT_EQ(Ask("GET", "/v1/models/m").body, models.body["data"][0]);
  const Answer none = Ask("GET", "/v1/models/n");
  EXPECT_EQ(none.status, 404);
  EXPECT_EQ(none.Error("code"), "model_not_found");
}

TEST_F(VideoApiTest, ViolationsNameTheCallersFields) {
  const Answer wrong = Post(
      R"({"model": "m", "prompt": "", "width": 7, "num_inference_steps": 0, "flow_shift": -1})");
  EXPECT_EQ(wrong.status, 400);
  EXPECT_EQ(wrong.Error("type"), "invalid_request_error");
  EXPECT_EQ(wrong.Error("code"), "invalid_argument");
  for (const char* const field : {"prompt: ", "width: ", "num_inference_steps: ", "flow_shift: "}) {
    EXPECT_THAT(wrong.Error("message"), HasSubstr(field));
  }
  const Answer unknown = Post(R"({"model": "m", "prompt": "a cat", "steps": 4, "shift": 5})");
  EXPECT_EQ(unknown.status, 400);
  EXPECT_EQ(unknown.Error("param"), "shift");
  EXPECT_THAT(unknown.Error("message"),
              HasSubstr("steps: is not a field of this API; did you mean num_inference_steps?"));
  const Answer model = Post(R"({"model": "sora-2", "prompt": "a cat"})");
  EXPECT_EQ(model.status, 400);
  EXPECT_EQ(model.Error("param"), "model");
  EXPECT_THAT(model.Error("message"), HasSubstr("m"));
  EXPECT_EQ(Post("{}").Error("param"), "prompt");
  EXPECT_EQ(Post("[").status, 400);
}

TEST_F(VideoApiTest, WhatIsNotThere) {
  for (const char* const path : {"/v1/videos/video_0123", "/v1/videos/x", "/v1/videos/video_..%2f",
                                 "/v1/videos/video_A", "/v1/videos/video_0123/content"}) {
    const Answer answer = Ask("GET", path);
    EXPECT_EQ(answer.status, 404) << path;
    EXPECT_EQ(answer.Error("code"), "job_not_found") << path;
  }
  for (const char* const path : {"/index.html", "/v1/videos/", "/v1/videos/video_0123/remix",
                                 "/metrics", "/v1/chat/completions", "/v1/models/a/b"}) {
    const Answer answer = Ask("GET", path);
    EXPECT_EQ(answer.status, 404) << path;
    EXPECT_EQ(answer.Error("code"), "unknown_url") << path;
  }
  const Answer method = Ask("PUT", "/v1/videos");
  EXPECT_EQ(method.status, 405);
  EXPECT_EQ(method.fields.at("allow"), "POST, GET, HEAD");
}

TEST_F(VideoApiTest, AFullQueueSaysWhenToTryAgain) {
  StopServer();
  ServerConfig config = HttpConfig();
  config.queue_capacity = 1;
  StartServing(config);
  engine_.Hold("T5_Encoding");
  MustPost();
  engine_.AwaitHeld("T5_Encoding");
  MustPost();
  const Answer full = Post(R"({"model": "m", "prompt": "a cat"})");
  EXPECT_EQ(full.status, 429);
  EXPECT_EQ(full.Error("type"), "rate_limit_error");
  EXPECT_EQ(full.Error("code"), "queue_full");
  EXPECT_GE(std::stoi(full.fields.at("retry-after")), 1);
  engine_.Release("T5_Encoding");
}

TEST_F(VideoApiTest, AnImageIsCutToAnExactSize) {
  const std::string image = absl::Base64Escape("PNG tall image");
  const auto size = [&](const std::string& exact) -> std::string {
    const Answer answer = Post(absl::StrCat(
        R"({"model": "m", "prompt": "a cat", "size": "96x64", "exact_size": )", exact,
        R"(, "input_reference": {"image_url": "data:image/png;base64,)", image, R"("}})"));
    EXPECT_EQ(answer.status, 200) << answer.text;
    return answer.body.value("size", "");
  };
  EXPECT_EQ(size("false"), "64x96") << "the image made it so";
  EXPECT_EQ(size("true"), "96x64");
}

TEST_F(VideoApiTest, AVideoSaysWhatWasDoneWithItsImage) {
  const Answer without = Post(R"({"model": "m", "prompt": "a cat"})");
  EXPECT_TRUE(without.body.at("input_reference").is_null()) << without.text;
  const std::string image = absl::Base64Escape("PNG image");
  const Answer answer = Post(
      absl::StrCat(R"({"model": "m", "prompt": "a cat", "background": "#102030", )",
                   R"("input_reference": {"image_url": "data:image/png;base64,)", image, R"("}})"));
  ASSERT_EQ(answer.status, 200) << answer.text;
  EXPECT_EQ(answer.body.at("input_reference"), nlohmann::json::parse(R"({
      "format": "PNG", "width": 64, "height": 32, "exif_orientation": 6,
      "blended_over": "#102030", "bits_per_sample": 16, "grey": false})"));
  const Answer refused = Post(
      absl::StrCat(R"({"model": "m", "prompt": "a cat", "background": "red", )",
                   R"("input_reference": {"image_url": "data:image/png;base64,)", image, R"("}})"));
  EXPECT_EQ(refused.status, 400);
  EXPECT_EQ(refused.Error("param"), "background");
}

TEST_F(VideoApiTest, AQuotaThatIsUsedUpIsARateLimit) {
  StopServer();
  ServerConfig config = HttpConfig();
  config.quotas = folder_ + "/quotas";
  const auto limit = [&](const std::string& quota) {
    std::ofstream(config.quotas + ".new") << "*: " << quota;
    std::filesystem::rename(config.quotas + ".new", config.quotas);
  };
  const auto expect_refused = [&](const Answer& answer, const std::string& what) {
    EXPECT_EQ(answer.status, 429) << answer.text;
    EXPECT_EQ(answer.Error("type"), "rate_limit_error");
    EXPECT_EQ(answer.Error("code"), "quota_exceeded");
    EXPECT_EQ(answer.Error("param"), "null");
    EXPECT_THAT(answer.Error("message"), HasSubstr(what));
  };
  limit("queued_jobs=1");
  StartServing(config);
  engine_.Hold("T5_Encoding");
  MustPost();
  engine_.AwaitHeld("T5_Encoding");
  MustPost();
  const Answer full = Post(R"({"model": "m", "prompt": "a cat"})");
  expect_refused(full, "has 1 job in the queue and asks for 1 more");
  EXPECT_GE(std::stoi(full.fields.at("retry-after")), 1);
  limit("queued_jobs=0");
  const Answer never = Post(R"({"model": "m", "prompt": "a cat"})");
  expect_refused(never, "no jobs are accepted until an administrator changes it");
  EXPECT_FALSE(never.fields.contains("retry-after")) << "waiting does not help";
  limit("calls_per_second=1");
  EXPECT_EQ(Ask("GET", "/v1/models").status, 200);
  const Answer often = Ask("GET", "/v1/models");
  expect_refused(often, "the quota calls_per_second is 1");
  EXPECT_EQ(often.fields.at("retry-after"), "1");
  engine_.Release("T5_Encoding");
}

TEST_F(VideoApiTest, AModelThatIsLoadingIsUnavailableForNow) {
  StopServer();
  engine_.Hold("Model_Initialization");
  Start(HttpConfig());
  engine_.AwaitHeld("Model_Initialization");
  const Answer answer = Post(R"({"model": "m", "prompt": "a cat"})");
  EXPECT_EQ(answer.status, 503);
  EXPECT_EQ(answer.Error("code"), "model_loading");
  EXPECT_GE(std::stoi(answer.fields.at("retry-after")), 1);
  EXPECT_THAT(Ask("GET", "/v1/models").body["data"], SizeIs(0));
  engine_.Release("Model_Initialization");
}

TEST_F(VideoApiTest, ABodyMayHaveItsBytesAndNoMore) {
  const auto ask = [&](const std::string& field, size_t bytes) {
    support::TcpClient client(HttpPort());
    EXPECT_TRUE(client.Send(absl::StrCat(
        "POST /v1/videos HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n", field,
        "\r\nConnection: close\r\n\r\n")));
    if (bytes > 0) {
      EXPECT_TRUE(client.Send("{" + std::string(bytes - 2, ' ') + "}"));
    }
    return client.ReadToEnd();
  };
  // The answer comes without a body.
  EXPECT_THAT(ask(absl::StrCat("Content-Length: ", kMaxVideoBodyBytes + 1), 0),
              AllOf(StartsWith("HTTP/1.1 413"), HasSubstr("request_too_large")));
  // This one is read, and has no prompt.
  EXPECT_THAT(ask(absl::StrCat("Content-Length: ", kMaxVideoBodyBytes), kMaxVideoBodyBytes),
              AllOf(StartsWith("HTTP/1.1 400"), HasSubstr("\"param\":\"prompt\"")));
}

TEST_F(VideoApiTest, AnnouncedBodiesTakeNothing) {
  // Together more than all requests may have, down to what always passes.
  std::vector<support::TcpClient> announced;
  for (int i = 0; i < 60; ++i) {
    announced.emplace_back(HttpPort());
    ASSERT_TRUE(announced.back().Send(absl::StrCat(
        "POST /v1/videos HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        "Expect: 100-continue\r\nContent-Length: ",
        kMaxVideoBodyBytes >> (i / 6), "\r\n\r\n")));
    ASSERT_FALSE(announced.back().AwaitByteOrEnd());
  }
  const std::string body = R"({"model": "m", "prompt": "a cat"})" + std::string(200 << 10, ' ');
  EXPECT_EQ(Post(body).status, 200);
}

TEST_F(VideoApiTest, AListHasThreeMebibytes) {
  engine_.Hold("T5_Encoding");
  // Each byte of the prompt becomes six of the answer.
  std::string prompt;
  for (int i = 0; i < 60'000; ++i) prompt += "\\u0001";
  for (int i = 0; i < 10; ++i) MustPost(R"({"model": "m", "prompt": ")" + prompt + "\"}");
  const Answer first = Ask("GET", "/v1/videos?limit=100");
  EXPECT_EQ(first.body["data"].size(), 9) << "with the ninth it has more than 3 MiB";
  EXPECT_EQ(first.body["has_more"], true);
  const Answer second = Ask("GET", "/v1/videos?limit=100&after=" + first.body.value("last_id", ""));
  EXPECT_EQ(second.body["data"].size(), 1);
  EXPECT_EQ(second.body["has_more"], false);
  engine_.Release("T5_Encoding");
}

TEST_F(VideoApiTest, DownloadsHaveTheirPlaces) {
  // Larger than what connections take unread.
  engine_.PadOutputs(size_t{32} << 20);
  const std::string path = "/v1/videos/" + MustMake() + "/content";
  const std::string request =
      absl::StrCat("GET ", path, " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  std::vector<support::TcpClient> readers;
  // Each connection is a caller of its own, and an eighth is kept for gRPC.
  for (int i = 0; i < AdmissionLimits().callers.downloads / 8 * 7; ++i) {
    readers.emplace_back(HttpPort());
    ASSERT_TRUE(readers.back().Send(request));
    ASSERT_FALSE(readers.back().AwaitByteOrEnd());
  }
  const Answer busy = Ask("GET", path);
  EXPECT_EQ(busy.status, 429);
  EXPECT_EQ(busy.Error("code"), "server_busy");
  // Other requests are answered beside them, and a reader that comes back gets all of it.
  EXPECT_EQ(Ask("GET", "/v1/models").status, 200);
  EXPECT_THAT(readers.back().ReadToEnd().size(), Gt(size_t{32} << 20));
}

TEST_F(VideoApiTest, StopsWhileAVideoIsBeingDeleted) {
  engine_.Hold("T5_Encoding");
  const std::string running = MustPost();
  engine_.AwaitHeld("T5_Encoding");
  std::thread caller([&] {
    support::AskHttp(HttpPort(), {"DELETE", "/v1/videos/" + running, {}, {}})
        .status()
        .IgnoreError();
  });
  StopWhileTimePasses();
  caller.join();
}

}  // namespace
}  // namespace wan::server
