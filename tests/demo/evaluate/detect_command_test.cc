// Whole command lines of `demo_evaluate detect`.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <span>
#include <sstream>

#include "demo/evaluate/commands.h"
#include "engine/formats/safetensors_writer.h"
#include "tests/client/fakes/temp_folder.h"
#include "tests/demo/evaluate/scene_painter.h"

namespace wan::demo {
namespace {

using Json = nlohmann::ordered_json;
using testing::HasSubstr;
using testing::Not;

constexpr char kScenes[] =
    R"({"id": "a", "caption": "c", "background": "black", "objects": [)"
    R"({"shape": "heart", "colour": "pink", "motion": "left", "side": "right"}]})"
    "\n"
    R"({"id": "b", "caption": "c", "background": "beige", "objects": [)"
    R"({"shape": "cross", "colour": "green", "motion": "grow", "side": "left"}]})";

const PaintedScene kHeart{.objects = {{.colour = "pink", .shape = "heart", .motion = "left"}}};
const PaintedScene kCross{.background = "beige",
                          .objects = {{.colour = "green", .shape = "cross", .motion = "grow"}}};

class DetectCommandTest : public testing::Test {
 protected:
  DetectCommandTest() { fakes::WriteFile(folder_ / "scenes.jsonl", kScenes); }

  void WriteTensor(const std::string& name, const std::string& tensor, const std::string& dtype,
                   const std::vector<int64_t>& shape, const std::vector<uint8_t>& bytes) {
    const absl::Status status =
        WriteSafetensors(Path(name), {{tensor, dtype, shape, std::as_bytes(std::span(bytes))}});
    ASSERT_TRUE(status.ok()) << status;
  }

  void WriteClips(const std::string& name, const std::vector<PaintedScene>& scenes) {
    std::vector<uint8_t> all;
    for (const PaintedScene& scene : scenes) {
      const std::vector<uint8_t> clip = Paint(scene);
      all.insert(all.end(), clip.begin(), clip.end());
    }
    const auto count = static_cast<int64_t>(scenes.size());
    WriteTensor(name, "video", "U8", {count, kPaintedFrames, kPaintedSize, kPaintedSize, 3}, all);
  }

  int Detect(const std::vector<std::string>& more = {}) {
    std::vector<std::string> args = {"detect", "--scenes", Path("scenes.jsonl"), "--clips",
                                     Path("clips.safetensors")};
    args.insert(args.end(), more.begin(), more.end());
    std::ostringstream out, err;
    const int code = RunDemoEvaluate(args, {.out = out, .err = err});
    out_ = out.str();
    err_ = err.str();
    return code;
  }

  // That the command line is refused, and what is said.
  std::string Refusal(const std::vector<std::string>& more = {}) {
    EXPECT_EQ(Detect(more), client::kExitUsage);
    EXPECT_EQ(out_, "");
    return err_;
  }

  std::string Path(const std::string& name) const { return (folder_ / name).string(); }

  const fakes::TempFolder folder_;
  std::string out_;
  std::string err_;
};

TEST_F(DetectCommandTest, JudgesClips) {
  WriteClips("clips.safetensors", {kHeart, kHeart});
  ASSERT_EQ(Detect({"--json", Path("a.json")}), client::kExitDone) << err_;
  EXPECT_THAT(out_, HasSubstr("one            2     50.0     50.0     50.0         50.0    100.0"));
  EXPECT_THAT(out_, Not(HasSubstr("dB")));
  const Json report = Json::parse(fakes::ReadFile(folder_ / "a.json"));
  EXPECT_EQ(report["one"]["shape"]["right"], 1);
  EXPECT_EQ(report["one"]["confusion"]["shape"]["cross"]["heart"], 1);
  EXPECT_EQ(report["clips"][1]["id"], "b");
  EXPECT_FALSE(report["clips"][1]["objects"][0]["shape"].get<bool>());
}

TEST_F(DetectCommandTest, MeasuresAgainstAReference) {
  WriteClips("clips.safetensors", {kHeart, kCross});
  PaintedScene noisy = kCross;
  noisy.noise = 10;
  WriteClips("truth.safetensors", {kHeart, noisy});
  ASSERT_EQ(Detect({"--reference", Path("truth.safetensors"), "--json", Path("a.json")}),
            client::kExitDone)
      << err_;
  const Json report = Json::parse(fakes::ReadFile(folder_ / "a.json"));
  EXPECT_EQ(report["clips"][0]["psnr"], 100.0);
  // Of evenly spread whole numbers from -10 to 10 the mean square is 110 / 3.
  EXPECT_NEAR(report["clips"][1]["psnr"].get<double>(), 32.49, 0.05);
  EXPECT_NEAR(report["one"]["psnr"]["mean_db"].get<double>(), 66.2, 0.1);
  EXPECT_NEAR(report["one"]["psnr"]["worst_db"].get<double>(), 32.49, 0.05);
  EXPECT_THAT(out_, HasSubstr("one      psnr 66.2"));
}

TEST_F(DetectCommandTest, SaysWhatIsWrongWithTheFiles) {
  EXPECT_THAT(Refusal(), HasSubstr("clips.safetensors"));
  const std::vector<uint8_t> pixels(size_t{2} * 3 * 32 * 32 * 3);
  WriteTensor("clips.safetensors", "latents", "U8", {2, 3, 32, 32, 3}, pixels);
  EXPECT_THAT(Refusal(), HasSubstr("clips.safetensors has no tensor 'video'"));
  WriteTensor("clips.safetensors", "video", "I8", {2, 3, 32, 32, 3}, pixels);
  EXPECT_THAT(Refusal(), HasSubstr("is to be U8 [clips, frames, height, width, 3], not I8"));
  WriteTensor("clips.safetensors", "video", "U8", {2, 3, 3, 32, 32}, pixels);
  EXPECT_THAT(Refusal(), HasSubstr("not U8 [2, 3, 3, 32, 32]"));
  WriteTensor("clips.safetensors", "video", "U8", {0, 3, 32, 32, 3}, {});
  EXPECT_THAT(Refusal(), HasSubstr("not U8 [0, 3, 32, 32, 3]"));
  WriteTensor("clips.safetensors", "video", "U8", {1, 6, 32, 32, 3}, pixels);
  EXPECT_THAT(Refusal(), HasSubstr("has 1 clips, but"));
  WriteTensor("clips.safetensors", "video", "U8", {2, 6, 16, 32, 3}, pixels);
  EXPECT_THAT(Refusal(), HasSubstr("at least 32x32 pixels; this one has 6 of 32x16"));
  fakes::WriteFile(folder_ / "clips.safetensors", "short");
  EXPECT_THAT(Refusal(), HasSubstr("clips.safetensors"));

  WriteTensor("clips.safetensors", "video", "U8", {2, 3, 32, 32, 3}, pixels);
  WriteTensor("truth.safetensors", "video", "U8", {2, 1, 96, 32, 3}, pixels);
  EXPECT_THAT(Refusal({"--reference", Path("truth.safetensors")}),
              HasSubstr("truth.safetensors are [2, 1, 96, 32, 3] and those of"));
  EXPECT_THAT(Refusal({"--reference", Path("none")}), HasSubstr(Path("none")));

  fakes::WriteFile(folder_ / "scenes.jsonl", "{\"id\": \n");
  EXPECT_THAT(Refusal(), HasSubstr("scenes.jsonl line 1: a line is to be a JSON object"));
}

TEST_F(DetectCommandTest, SaysThatItCannotWrite) {
  WriteClips("clips.safetensors", {kHeart, kCross});
  EXPECT_EQ(Detect({"--json", Path("no/such/folder.json")}), client::kExitFailed);
  EXPECT_THAT(err_, HasSubstr("cannot write " + Path("no/such/folder.json")));
}

}  // namespace
}  // namespace wan::demo
