// Thumbnails and sprite sheets of finished videos.
#include "server/http/video_picture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "engine/media/image_decode.h"
#include "engine/media/video_writer.h"
#include "tests/server/http/video_api_fixture.h"

namespace wan::server {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class VideoPictureTest : public VideoApiServerTest {
 protected:
  void SetUp() override { StartServing(HttpConfig()); }

  // From now on the engine writes videos of 640x352 with 13 frames.
  void WriteVideos() {
    for (const OutputKind kind : {OutputKind::kMp4, OutputKind::kLosslessMkv}) {
      const std::string path = folder_ + "/video";
      const VideoFormat format{640, 352, 24};
      auto writer = OpenVideoWriter(kind, path, format);
      ASSERT_TRUE(writer.ok()) << writer.status();
      for (int i = 0; i < 13; ++i) {
        ASSERT_TRUE(
            (*writer)
                ->Write(std::vector<uint8_t>(size_t{640} * 352 * 3, static_cast<uint8_t>(16 * i)))
                .ok());
      }
      ASSERT_TRUE((*writer)->Finish().ok());
      std::ifstream file(path, std::ios::binary);
      engine_.WriteOutputs(kind, {std::istreambuf_iterator<char>(file), {}});
    }
  }

  static std::string PathOf(const std::string& id, const std::string& variant) {
    return "/v1/videos/" + id + "/content?variant=" + variant;
  }

  static RgbImage ImageOf(const Answer& answer) {
    const absl::StatusOr<DecodedImage> decoded = DecodeImage(answer.text);
    EXPECT_TRUE(decoded.ok()) << decoded.status();
    return decoded.ok() ? decoded->image : RgbImage();
  }
};

constexpr char kRequest[] = R"({"model": "m", "prompt": "a cat", "num_frames": 13})";

TEST_F(VideoPictureTest, AThumbnailIsTheFirstFrame) {
  WriteVideos();
  const std::string id = MustMake(kRequest);
  const Answer answer = Ask("GET", PathOf(id, "thumbnail"));
  ASSERT_EQ(answer.status, 200) << answer.text;
  EXPECT_EQ(answer.fields.at("content-type"), "image/jpeg");
  EXPECT_THAT(answer.fields.at("cache-control"), StartsWith("private, max-age="));
  const RgbImage image = ImageOf(answer);
  EXPECT_EQ(image.width, 480);
  EXPECT_EQ(image.height, 264);
  const Answer head = Ask("HEAD", PathOf(id, "thumbnail"));
  EXPECT_EQ(head.fields, answer.fields);
  EXPECT_EQ(head.text, "");
}

TEST_F(VideoPictureTest, ASpriteSheetIsAGridOfFrames) {
  WriteVideos();
  const std::string id = MustMake(kRequest);
  const Answer answer = Ask("GET", PathOf(id, "spritesheet"));
  ASSERT_EQ(answer.status, 200) << answer.text;
  const RgbImage image = ImageOf(answer);
  EXPECT_EQ(image.width, 4 * 240);
  EXPECT_EQ(image.height, 4 * 132);
  // Thirteen frames, each lighter than the one before.
  const auto lightness = [&](int cell) {
    const size_t x = static_cast<size_t>(cell % 4) * 240 + 120;
    const size_t y = static_cast<size_t>(cell / 4) * 132 + 66;
    return image.pixels[(y * image.width + x) * 3];
  };
  for (int cell = 1; cell < 13; ++cell) EXPECT_GT(lightness(cell), lightness(cell - 1) + 8);
  EXPECT_LT(lightness(13), 8);
}

TEST_F(VideoPictureTest, AnotherFormatHasThemAsWell) {
  WriteVideos();
  wan::v1::GenerationRequest request = SmallRequest();
  request.set_num_frames(13);
  request.add_outputs(wan::v1::OUTPUT_KIND_LOSSLESS_MKV);
  const wan::v1::Job job = AwaitEnd(MustCreate(request).name());
  const std::string id = "video_" + job.name().substr(std::string("jobs/").size());
  EXPECT_EQ(ImageOf(Ask("GET", PathOf(id, "thumbnail"))).width, 480);
}

TEST_F(VideoPictureTest, WhoHasThePictureGetsItNotAgain) {
  WriteVideos();
  const std::string id = MustMake(kRequest);
  const std::string thumbnail = Ask("GET", PathOf(id, "thumbnail")).fields.at("etag");
  const std::string sheet = Ask("GET", PathOf(id, "spritesheet")).fields.at("etag");
  const std::string video = Ask("GET", "/v1/videos/" + id + "/content").fields.at("etag");
  EXPECT_NE(thumbnail, sheet);
  EXPECT_NE(thumbnail, video);
  const auto with = [](const std::string& tag) {
    return std::map<std::string, std::string>{{"If-None-Match", tag}};
  };
  EXPECT_EQ(Ask("GET", PathOf(id, "thumbnail"), "", with(thumbnail)).status, 304);
  EXPECT_EQ(Ask("GET", PathOf(id, "spritesheet"), "", with(sheet)).status, 304);
  EXPECT_EQ(Ask("GET", PathOf(id, "spritesheet"), "", with(thumbnail)).status, 200);
}

TEST_F(VideoPictureTest, ManyAskAtOnce) {
  WriteVideos();
  const std::string id = MustMake(kRequest);
  std::vector<std::string> pictures(8);
  std::vector<std::thread> callers;
  callers.reserve(pictures.size());
  for (std::string& picture : pictures) {
    callers.emplace_back([&] { picture = Ask("GET", PathOf(id, "spritesheet")).text; });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_NE(pictures[0], "");
  for (const std::string& picture : pictures) EXPECT_EQ(picture, pictures[0]);
}

TEST_F(VideoPictureTest, SaysWhyThereIsNone) {
  // What the fake engine writes is not a video.
  const std::string broken = MustMake(kRequest);
  const Answer damaged = Ask("GET", PathOf(broken, "thumbnail"));
  EXPECT_EQ(damaged.status, 500);
  EXPECT_EQ(damaged.Error("code"), "data_loss");
  const Answer wrong = Ask("GET", PathOf(broken, "poster"));
  EXPECT_EQ(wrong.status, 400);
  EXPECT_EQ(wrong.Error("message"),
            "variant: is 'poster'; must be video, thumbnail, spritesheet or live");
  wan::v1::GenerationRequest request = SmallRequest();
  request.add_outputs(wan::v1::OUTPUT_KIND_LATENTS);
  const wan::v1::Job latents = AwaitEnd(MustCreate(request).name());
  const Answer none = Ask(
      "GET", PathOf("video_" + latents.name().substr(std::string("jobs/").size()), "thumbnail"));
  EXPECT_EQ(none.status, 404);
  EXPECT_THAT(none.Error("message"), HasSubstr("has no video"));
  engine_.Hold("Step_0_Inference");
  const std::string id = MustPost(kRequest);
  engine_.AwaitHeld("Step_0_Inference");
  EXPECT_EQ(Ask("GET", PathOf(id, "thumbnail")).Error("code"), "video_not_completed");
  engine_.Release("Step_0_Inference");
}

TEST(PictureCacheTest, KeepsThoseThatWereUsedLast) {
  PictureCache cache(10);
  cache.Add("a", "1234");
  cache.Add("b", "1234");
  EXPECT_EQ(cache.Find("a"), "1234");
  cache.Add("c", "1234");
  EXPECT_EQ(cache.Find("a"), "1234");
  EXPECT_EQ(cache.Find("b"), std::nullopt);
  EXPECT_EQ(cache.Find("c"), "1234");
  cache.Add("large", "12345678901");
  EXPECT_EQ(cache.Find("large"), std::nullopt);
  EXPECT_EQ(cache.Find("c"), "1234");
}

}  // namespace
}  // namespace wan::server
