#include "server/http/video_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/api/errors.h"

namespace wan::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

absl::StatusOr<wan::v1::Model> FindM(std::string_view name) {
  if (name != "m") return absl::NotFoundError("no such model");
  wan::v1::Model model;
  model.mutable_defaults()->set_fps(24);
  model.set_temporal_stride(4);
  return model;
}

absl::StatusOr<wan::v1::GenerationRequest> Translate(Form form) {
  return ToGenerationRequest(std::move(form), "key-1", FindM);
}

absl::StatusOr<wan::v1::GenerationRequest> FromJson(const std::string& text) {
  return Translate(*ParseForm("application/json", text));
}

// "FIELD: DESCRIPTION" of each violation.
std::vector<std::string> ViolationsOf(const std::string& text) {
  std::vector<std::string> violations;
  for (const FieldViolation& violation : FieldViolationsOf(FromJson(text).status())) {
    violations.push_back(violation.field + ": " + violation.description);
  }
  return violations;
}

TEST(VideoRequestTest, EveryField) {
  const auto request = FromJson(R"({
    "model": "m", "prompt": "a cat", "negative_prompt": "rain", "width": 64, "height": 32,
    "num_frames": 9, "fps": 12, "seed": 9007199254740993, "num_inference_steps": 4,
    "guidance_scale": 4, "guidance_scale_2": 3.5, "flow_shift": 7, "user": "u-1",
    "webhook_url": "https://hooks.example.com/a", "background": "#102030",
    "loras": [{"name": "ink"}, {"name": "oil", "scale": -0.5}],
    "input_reference": {"image_url": "data:image/png;base64,UE5HAA=="}})");
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(request->model(), "m");
  EXPECT_EQ(request->prompt(), "a cat");
  EXPECT_EQ(request->negative_prompt(), "rain");
  EXPECT_EQ(request->width(), 64);
  EXPECT_EQ(request->height(), 32);
  EXPECT_EQ(request->num_frames(), 9);
  EXPECT_EQ(request->fps(), 12);
  EXPECT_EQ(request->seed(), 9007199254740993);
  EXPECT_EQ(request->steps(), 4);
  // The contract has low noise first.
  EXPECT_THAT(request->guidance_scale(), ElementsAre(3.5, 4));
  EXPECT_EQ(request->shift(), 7);
  EXPECT_EQ(request->labels().at("user"), "u-1");
  ASSERT_EQ(request->loras_size(), 2);
  EXPECT_FALSE(request->loras(0).has_scale());
  EXPECT_EQ(request->loras(1).name(), "oil");
  EXPECT_EQ(request->loras(1).scale(), -0.5);
  EXPECT_EQ(request->image(), std::string("PNG\0", 4));
  EXPECT_EQ(request->background(), "#102030");
  EXPECT_EQ(request->webhook_url(), "https://hooks.example.com/a");
  EXPECT_EQ(request->request_id(), "key-1");
}

TEST(VideoRequestTest, TheSizeMayBeExact) {
  for (const char* const yes : {"true", R"("true")"}) {
    const auto request =
        FromJson(absl::StrCat(R"({"model": "m", "size": "64x32", "exact_size": )", yes, "}"));
    ASSERT_TRUE(request.ok()) << request.status();
    EXPECT_TRUE(request->exact_size());
  }
  for (const char* const no : {"false", R"("false")", "null"}) {
    const auto request =
        FromJson(absl::StrCat(R"({"model": "m", "size": "64x32", "exact_size": )", no, "}"));
    ASSERT_TRUE(request.ok()) << request.status();
    EXPECT_FALSE(request->exact_size());
  }
  EXPECT_THAT(ViolationsOf(R"({"model": "m", "exact_size": 1})"),
              ElementsAre("exact_size: must be true or false, got 1"));
}

TEST(VideoRequestTest, WhatIsLeftOutIsLeftToTheModel) {
  const auto request = FromJson(R"({"model": "m", "prompt": "a cat"})");
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_FALSE(request->has_width() || request->has_height() || request->has_num_frames() ||
               request->has_fps() || request->has_steps() || request->has_shift() ||
               request->has_seed() || request->has_negative_prompt() || request->has_image() ||
               request->has_background());
  EXPECT_THAT(request->guidance_scale(), IsEmpty());
}

// Of a multipart body, whose values are all texts.
TEST(VideoRequestTest, TextsOfNumbersAreNumbers) {
  Form form;
  form.fields = {{"model", "m"},          {"prompt", "a cat"},
                 {"size", "64x32"},       {"seconds", "2"},
                 {"fps", "10"},           {"seed", "-1"},
                 {"guidance_scale", "5"}, {"loras", R"([{"name": "ink", "scale": 2}])"}};
  form.files = {{"input_reference", "PNG"}};
  const auto request = Translate(std::move(form));
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(request->width(), 64);
  EXPECT_EQ(request->height(), 32);
  EXPECT_EQ(request->num_frames(), 21);
  EXPECT_EQ(request->seed(), -1);
  EXPECT_THAT(request->guidance_scale(), ElementsAre(5));
  EXPECT_EQ(request->loras(0).scale(), 2);
  EXPECT_EQ(request->image(), "PNG");
}

TEST(VideoRequestTest, SecondsBecomeTheNearestNumberOfFrames) {
  const auto frames = [](const std::string& fields) {
    return FromJson(absl::StrCat(R"({"prompt": "a cat", )", fields, "}"))->num_frames();
  };
  EXPECT_EQ(frames(R"("model": "m", "seconds": "5")"), 121);
  EXPECT_EQ(frames(R"("model": "m", "seconds": 5.04)"), 121);
  EXPECT_EQ(frames(R"("model": "m", "seconds": 0.01)"), 1);
  EXPECT_EQ(frames(R"("model": "m", "seconds": 5, "fps": 16)"), 81);
  // The model's error comes from those who know the models.
  EXPECT_EQ(frames(R"("model": "x", "seconds": 5)"), 0);
}

TEST(VideoRequestTest, ImageOfAClientThatSendsItInBrackets) {
  Form form;
  form.fields = {{"input_reference[image_url]", "data:image/jpeg;base64,UE5H"}};
  EXPECT_EQ(Translate(std::move(form))->image(), "PNG");
}

TEST(VideoRequestTest, ViolationsHaveTheCallersNames) {
  EXPECT_THAT(
      ViolationsOf(R"({"prompt": 7, "seed": "x", "fps": 2.5, "flow_shift": "fast",
                               "num_inference_steps": 3000000000, "quality": "high"})"),
      ElementsAre("prompt: must be a text, got 7", HasSubstr("fps: must be a whole number from"),
                  HasSubstr("num_inference_steps: must be a whole number from"),
                  "flow_shift: must be a number, got \"fast\"",
                  HasSubstr("seed: must be a whole number from"),
                  HasSubstr("quality: is not a field of POST /v1/videos on this server")));
  EXPECT_THAT(ViolationsOf(R"({"size": "64x32", "width": 64})"),
              ElementsAre("size: excludes width and height; give either size or these"));
  EXPECT_THAT(ViolationsOf(R"({"size": "64"})"), ElementsAre(HasSubstr("size: must be WIDTHx")));
  EXPECT_THAT(ViolationsOf(R"({"seconds": 4, "num_frames": 5})"),
              ElementsAre("seconds: excludes num_frames; give one of the two"));
  EXPECT_THAT(ViolationsOf(R"({"seconds": 0})"), ElementsAre(HasSubstr("seconds: must be more")));
  EXPECT_THAT(ViolationsOf(R"({"guidance_scale_2": 3})"),
              ElementsAre(HasSubstr("guidance_scale_2: needs guidance_scale")));
  EXPECT_THAT(ViolationsOf(R"({"loras": "x"})"), ElementsAre(HasSubstr("loras: must be a list")));
  EXPECT_THAT(ViolationsOf(R"({"loras": [{"name": "a", "weight": 1}, 3]})"),
              ElementsAre(HasSubstr("loras[0]: must have a name"),
                          HasSubstr("loras[1]: must have a name")));
  EXPECT_THAT(ViolationsOf(R"({"seed": 18446744073709551615})"),
              ElementsAre(HasSubstr("seed: must be a whole number")));
}

TEST(VideoRequestTest, TheServerFetchesNoImage) {
  for (const char* const image :
       {R"({"image_url": "https://example.com/a.png"})", R"({"file_id": "file-1"})", R"("x")",
        R"({"image_url": "data:image/png;base64,*"})", "7", "[]", R"({"image_url": 7})"}) {
    EXPECT_THAT(ViolationsOf(absl::StrCat(R"({"input_reference": )", image, "}")),
                ElementsAre(HasSubstr("input_reference: must hold the image itself")))
        << image;
  }
}

TEST(VideoRequestTest, OtherFilesAreRefused) {
  Form form;
  form.files = {{"video", "x"}};
  const auto violations = FieldViolationsOf(Translate(std::move(form)).status());
  ASSERT_EQ(violations.size(), 1u);
  EXPECT_EQ(violations[0].field, "video");
}

TEST(VideoRequestTest, NamesOfTheContractBecomeThoseOfHttp) {
  EXPECT_EQ(HttpFieldOf("steps"), "num_inference_steps");
  EXPECT_EQ(HttpFieldOf("image"), "input_reference");
  EXPECT_EQ(HttpFieldOf("request_id"), "Idempotency-Key");
  EXPECT_EQ(HttpFieldOf("width"), "width");
}

}  // namespace
}  // namespace wan::server
