#include "server/http/video_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/api/errors.h"
#include "server/http/field_names.h"

namespace wan::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

absl::StatusOr<wan::v1::Model> FindM(std::string_view name) {
  if (name != "m") return absl::NotFoundError("no such model");
  wan::v1::Model model;
  model.set_name("models/m");
  model.mutable_defaults()->set_fps(24);
  model.set_spatial_stride(32);
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
    "guidance_scale": 4, "guidance_scale_2": 3.5, "flow_shift": 7, "quality": "fast",
    "decoder": "tiny", "resume": "require", "user": "u-1",
    "webhook_url": "https://hooks.example.com/a", "background": "#102030",
    "preview_interval": 2,
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
  EXPECT_EQ(request->quality(), wan::v1::QUALITY_FAST);
  EXPECT_EQ(request->decoder(), wan::v1::DECODER_TINY);
  EXPECT_EQ(request->resume(), wan::v1::RESUME_REQUIRE);
  EXPECT_EQ(request->labels().at("user"), "u-1");
  ASSERT_EQ(request->loras_size(), 2);
  EXPECT_FALSE(request->loras(0).has_scale());
  EXPECT_EQ(request->loras(1).name(), "oil");
  EXPECT_EQ(request->loras(1).scale(), -0.5);
  EXPECT_EQ(request->image(), std::string("PNG\0", 4));
  EXPECT_EQ(request->background(), "#102030");
  EXPECT_EQ(request->webhook_url(), "https://hooks.example.com/a");
  EXPECT_EQ(request->preview_interval(), 2);
  EXPECT_EQ(request->request_id(), "key-1");
}

TEST(VideoRequestTest, TheModelMayBeLeftOutWhereThereIsOne) {
  const auto from = [](const std::string& text) {
    return ToGenerationRequest(
        *ParseForm("application/json", text), std::nullopt,
        [](std::string_view name) { return FindM(name.empty() ? "m" : name); });
  };
  const auto only = from(R"({"prompt": "a cat", "seconds": 1})");
  ASSERT_TRUE(only.ok()) << only.status();
  EXPECT_EQ(only->model(), "m");
  EXPECT_EQ(only->num_frames(), 25);
  // An empty one may be a mistake of the caller.
  EXPECT_EQ(from(R"({"model": "", "prompt": "a cat"})")->model(), "");
  // FindM without a name finds none, as where there are several.
  EXPECT_EQ(FromJson(R"({"prompt": "a cat"})")->model(), "");
}

TEST(VideoRequestTest, LatentsComeFromAnEarlierVideo) {
  const auto request = FromJson(R"({"model": "m", "latents": {"video": "video_abc"},
    "initial_latents": {"video": "video_abd"}, "strength": 0.5, "num_inference_steps": 0})");
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(request->latents().job(), "jobs/abc");
  EXPECT_EQ(request->initial_latents().job(), "jobs/abd");
  EXPECT_EQ(request->strength(), 0.5);
  EXPECT_EQ(request->steps(), 0);
  EXPECT_THAT(request->outputs(), IsEmpty());
  // A form has the object as text.
  Form form;
  form.texts_only = true;
  form.fields = {{"model", "m"}, {"latents", R"({"video": "video_abc"})"}, {"strength", "1"}};
  const auto from_form = Translate(std::move(form));
  ASSERT_TRUE(from_form.ok()) << from_form.status();
  EXPECT_EQ(from_form->latents().job(), "jobs/abc");
  EXPECT_THAT(
      ViolationsOf(R"({"latents": "video_abc", "initial_latents": {"video": "jobs/abc"},
                       "strength": "much"})"),
      ElementsAre("initial_latents.video: is \"jobs/abc\"; must be the id of an earlier video, "
                  "video_ID",
                  "latents: is \"video_abc\"; must be an earlier video, for example {\"video\": "
                  "\"video_ID\"}",
                  "strength: is \"much\"; must be a number"));
  EXPECT_EQ(HttpFieldOf("latents.job"), "latents.video");
}

TEST(VideoRequestTest, LatentsAreKeptForLaterVideos) {
  const auto request = FromJson(R"({"model": "m", "keep_latents": true})");
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_THAT(request->outputs(),
              ElementsAre(wan::v1::OUTPUT_KIND_MP4, wan::v1::OUTPUT_KIND_LATENTS));
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
              ElementsAre("exact_size: is 1; must be true or false"));
}

TEST(VideoRequestTest, TheQualityIsAWord) {
  for (const auto& [word, quality] :
       {std::pair("exact", wan::v1::QUALITY_EXACT), std::pair("lossless", wan::v1::QUALITY_EXACT),
        std::pair("High", wan::v1::QUALITY_HIGH), std::pair("fast", wan::v1::QUALITY_FAST)}) {
    const auto request =
        FromJson(absl::StrCat(R"({"model": "m", "prompt": "a cat", "quality": ")", word, R"("})"));
    ASSERT_TRUE(request.ok()) << request.status();
    EXPECT_EQ(request->quality(), quality);
  }
  EXPECT_THAT(ViolationsOf(R"({"resume": "never"})"),
              ElementsAre(R"(resume: is "never"; must be one of prefer, require)"));
  EXPECT_THAT(ViolationsOf(R"({"quality": "best"})"),
              ElementsAre(R"(quality: is "best"; must be one of exact, high, fast)"));
  EXPECT_THAT(ViolationsOf(R"({"quality": 1})"),
              ElementsAre("quality: is 1; must be one of exact, high, fast"));
  EXPECT_THAT(ViolationsOf(R"({"quality": ""})"),
              ElementsAre(R"(quality: is ""; must be one of exact, high, fast)"));
  EXPECT_THAT(ViolationsOf(R"({"decoder": "small"})"),
              ElementsAre(R"(decoder: is "small"; must be one of full, tiny)"));
}

TEST(VideoRequestTest, WhatIsLeftOutIsLeftToTheModel) {
  const auto request = FromJson(R"({"model": "m", "prompt": "a cat"})");
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_FALSE(request->has_width() || request->has_height() || request->has_num_frames() ||
               request->has_fps() || request->has_steps() || request->has_shift() ||
               request->has_seed() || request->has_negative_prompt() || request->has_image() ||
               request->has_background());
  EXPECT_EQ(request->quality(), wan::v1::QUALITY_UNSPECIFIED);
  EXPECT_THAT(request->guidance_scale(), IsEmpty());
}

// Of a multipart body, whose values are all texts.
TEST(VideoRequestTest, TextsOfNumbersAreNumbers) {
  Form form;
  form.fields = {{"model", "m"},          {"prompt", "a cat"},
                 {"size", "64*32"},       {"seconds", "2"},
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

// As programs write them: Python says True and 16.0, and a form has no null.
TEST(VideoRequestTest, OtherSpellingsInAForm) {
  Form form;
  form.texts_only = true;
  form.fields = {{"model", "m"},      {"prompt", "a cat"}, {"exact_size", "True"},
                 {"width", "64.0"},   {"height", "32"},    {"num_inference_steps", "4e1"},
                 {"seed", ""},        {"fps", ""},         {"guidance_scale", ""},
                 {"size", ""},        {"seconds", ""},     {"flow_shift", ""},
                 {"quality", ""},     {"decoder", ""},     {"resume", ""},
                 {"progressive", ""}, {"n", "1"}};
  const auto request = Translate(std::move(form));
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_TRUE(request->exact_size());
  EXPECT_EQ(request->width(), 64);
  EXPECT_EQ(request->height(), 32);
  EXPECT_EQ(request->steps(), 40);
  EXPECT_FALSE(request->has_seed() || request->has_fps() || request->has_num_frames() ||
               request->has_shift());
  EXPECT_THAT(request->guidance_scale(), IsEmpty());
  for (const char* const no : {"False", "FALSE", "false", ""}) {
    Form other;
    other.texts_only = true;
    other.fields = {{"model", "m"}, {"exact_size", no}};
    const auto without = Translate(std::move(other));
    ASSERT_TRUE(without.ok()) << without.status();
    EXPECT_FALSE(without->exact_size());
  }
}

TEST(VideoRequestTest, WholeNumbersMayHaveAPoint) {
  const auto request = FromJson(R"({"model": "m", "num_inference_steps": 16.0, "seed": 3e9})");
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(request->steps(), 16);
  EXPECT_EQ(request->seed(), 3'000'000'000);
}

TEST(VideoRequestTest, OneVideoIsMade) {
  for (const char* const one : {"1", "1.0", R"("1")", "null"}) {
    EXPECT_TRUE(FromJson(absl::StrCat(R"({"model": "m", "n": )", one, "}")).ok()) << one;
  }
  for (const char* const other : {"2", "0", "true"}) {
    EXPECT_THAT(ViolationsOf(absl::StrCat(R"({"model": "m", "n": )", other, "}")),
                ElementsAre(absl::StrCat(
                    "n: is ", other,
                    "; must be 1, because a request makes one video; send one request for each")));
  }
}

// What is given must not look as if it had been left out.
TEST(VideoRequestTest, WhatIsGivenIsNotEmpty) {
  for (const char* const field : {"negative_prompt", "user", "webhook_url", "loras"}) {
    Form form;
    form.texts_only = true;
    form.fields = {{field, ""}};
    for (const auto& refused :
         {Translate(std::move(form)), FromJson(absl::StrCat(R"({")", field, R"(": ""})"))}) {
      const auto violations = FieldViolationsOf(refused.status());
      ASSERT_EQ(violations.size(), 1u) << field;
      EXPECT_EQ(violations[0].field, field);
      EXPECT_THAT(violations[0].description, HasSubstr("is empty; must ")) << field;
    }
  }
  // The job service says so of these, beside all else that it finds.
  EXPECT_TRUE(FromJson(R"({"model": "", "prompt": ""})").ok());
  EXPECT_THAT(ViolationsOf(R"({"loras": []})"), ElementsAre(HasSubstr("loras: is empty; must ")));
  EXPECT_THAT(ViolationsOf(R"({"loras": [{}, {"name": ""}, {"name": "a", "scale": ""}]})"),
              ElementsAre(HasSubstr("loras[0].name: must be given"),
                          HasSubstr("loras[1].name: is empty; must "),
                          HasSubstr("loras[2].scale: is \"\"; must be a number")));
  // JSON has null for what is left out.
  EXPECT_THAT(ViolationsOf(R"({"seed": "", "guidance_scale": "", "exact_size": "", "size": ""})"),
              ElementsAre(HasSubstr("exact_size: is \"\";"), HasSubstr("size: is \"\"; must be"),
                          HasSubstr("guidance_scale: is \"\";"), HasSubstr("seed: is \"\";")));
  EXPECT_TRUE(FromJson(R"({"seed": null, "loras": [{"name": "a", "scale": null}]})").ok());
}

TEST(VideoRequestTest, AnImageThatIsEmptyIsRefused) {
  Form file;
  file.files = {{"input_reference", ""}};
  Form url;
  url.fields = {{"input_reference", {{"image_url", "data:image/png;base64,"}}}};
  for (Form* const form : {&file, &url}) {
    const auto violations = FieldViolationsOf(Translate(std::move(*form)).status());
    ASSERT_EQ(violations.size(), 1u);
    EXPECT_EQ(violations[0].field, "input_reference");
    EXPECT_THAT(violations[0].description, HasSubstr("is empty; must hold an image"));
  }
}

TEST(VideoRequestTest, FieldsOfOtherApisAreTranslated) {
  const auto meant = [](const std::string& name) {
    std::vector<std::string> all = ViolationsOf(absl::StrCat(R"({")", name, R"(": 4})"));
    EXPECT_EQ(all.size(), 1u) << name;
    const std::string start = name + ": is not a field of this API; ";
    EXPECT_EQ(all.at(0).substr(0, start.size()), start);
    return all.at(0).substr(start.size());
  };
  for (const auto& [name, ours] : std::vector<std::pair<std::string, std::string>>{
           {"steps", "num_inference_steps"},
           {"sampling_steps", "num_inference_steps"},
           {"numInferenceSteps", "num_inference_steps"},
           {"shift", "flow_shift"},
           {"sample_shift", "flow_shift"},
           {"image", "input_reference"},
           {"first_frame", "input_reference"},
           {"image_url", "input_reference"},
           {"duration", "seconds"},
           {"n_seconds", "seconds"},
           {"frames", "num_frames"},
           {"frame_num", "num_frames"},
           {"frame_rate", "fps"},
           {"cfg_scale", "guidance_scale"},
           {"guidance", "guidance_scale"},
           {"guidance_scale_low", "guidance_scale_2"},
           {"resolution", "size"},
           {"n_prompt", "negative_prompt"},
           {"text", "prompt"},
           {"lora", "loras"},
           {"num_videos_per_prompt", "n"},
           {"callback_url", "webhook_url"},
           {"safety_identifier", "user"},
           // Mistyped.
           {"promt", "prompt"},
           {"num_inference_step", "num_inference_steps"},
           {"Seed", "seed"},
           {"quantization", "quality"},
           {"heigth", "height"}}) {
    EXPECT_EQ(meant(name), "did you mean " + ours + "?") << name;
  }
  EXPECT_EQ(meant("request_id"), "send the header Idempotency-Key instead");
  EXPECT_EQ(meant("priority"), "only the gRPC API has it (docs/use/api.md)");
  for (const char* const name : {"watermark", "style", "x", "zzzzzz"}) {
    EXPECT_EQ(meant(name), "leave it out (docs/use/openai.md lists the fields)") << name;
  }
}

TEST(VideoRequestTest, AFieldWithoutANameIsTold) {
  EXPECT_THAT(
      ViolationsOf(R"({"": 4})"),
      ElementsAre("\"\": is not a field of this API; leave it out (docs/use/openai.md lists the "
                  "fields)"));
}

TEST(VideoRequestTest, MessagesShowTheBeginningOfALargeValue) {
  Form form;
  form.fields = {{"seed", std::string(1'000'000, '\x01')}, {"fps", {{"a", "b"}}}, {"width", {1}}};
  std::vector<std::string> descriptions;
  for (const FieldViolation& violation : FieldViolationsOf(Translate(std::move(form)).status())) {
    EXPECT_LT(violation.description.size(), 500u);
    descriptions.push_back(violation.description);
  }
  EXPECT_THAT(descriptions, ElementsAre(HasSubstr("is a list; must be a whole"),
                                        HasSubstr("is an object; must be a whole"),
                                        HasSubstr("is \"\\u0001\\u0001")));
}

TEST(VideoRequestTest, AllUnknownFieldsAreNamedAtOnce) {
  Form form;
  form.fields = {{"steps", 4}, {"shift", 5}, {"loras", {{{"path", "a"}, {"weight", 1}}}}};
  form.files = {{"image", "PNG"}, {"prompt", "\xff"}, {"video", "x"}};
  std::vector<std::string> violations;
  for (const FieldViolation& violation : FieldViolationsOf(Translate(std::move(form)).status())) {
    violations.push_back(violation.field + ": " + violation.description);
  }
  EXPECT_THAT(
      violations,
      ElementsAre(
          "loras[0].path: is not a field of a LoRA; did you mean name?",
          "loras[0].weight: is not a field of a LoRA; did you mean scale?",
          HasSubstr("loras[0].name: must be given"),
          "shift: is not a field of this API; did you mean flow_shift?",
          "steps: is not a field of this API; did you mean num_inference_steps?",
          "image: is not a field of this API; did you mean input_reference?",
          "prompt: is a file, or is not UTF-8; must be a text",
          "video: is not a field of this API; leave it out (docs/use/openai.md lists the fields)"));
}

TEST(VideoRequestTest, ViolationsHaveTheCallersNames) {
  EXPECT_THAT(
      ViolationsOf(R"({"prompt": 7, "seed": "x", "fps": 2.5, "flow_shift": "fast", "width": "wide",
                       "num_inference_steps": 3000000000, "num_frames": true})"),
      ElementsAre("prompt: is 7; must be a text",
                  "width: is \"wide\"; must be a whole number of pixels up to 4096",
                  "num_frames: is true; must be a whole number from 1 to 4093",
                  "fps: is 2.5; must be a whole number from 1 to 120",
                  "num_inference_steps: is 3000000000; must be a whole number from 1 to 1000",
                  "flow_shift: is \"fast\"; must be a number",
                  "seed: is \"x\"; must be a whole number from 0 to 9223372036854775807, or a "
                  "negative one, with which the server draws a seed"));
  EXPECT_THAT(ViolationsOf(R"({"model": "m", "height": "720p"})"),
              ElementsAre("height: is \"720p\"; must be a multiple of 32 from 32 to 4096"));
  EXPECT_THAT(ViolationsOf(R"({"size": "64x32", "width": 64})"),
              ElementsAre("size: excludes width and height; give either size or these"));
  EXPECT_THAT(ViolationsOf(R"({"size": "64"})"),
              ElementsAre("size: is \"64\"; must be WIDTHxHEIGHT, for example 1280x704"));
  EXPECT_THAT(ViolationsOf(R"({"seconds": 4, "num_frames": 5})"),
              ElementsAre("seconds: excludes num_frames; give one of the two"));
  EXPECT_THAT(ViolationsOf(R"({"seconds": 0})"),
              ElementsAre("seconds: is 0; must be more than 0 and at most 3600"));
  EXPECT_THAT(ViolationsOf(R"({"guidance_scale_2": 3})"),
              ElementsAre(HasSubstr("guidance_scale_2: needs guidance_scale")));
  EXPECT_THAT(ViolationsOf(R"({"loras": "x"})"), ElementsAre(HasSubstr("loras: must be a list")));
  EXPECT_THAT(ViolationsOf(R"({"loras": [{"name": 1}, 3]})"),
              ElementsAre("loras[0].name: is 1; must be a text",
                          HasSubstr("loras[1]: is 3; must be an object such as {")));
  for (const char* const seed : {"18446744073709551615", "1e19", "1.5", "\"nan\"", "[]", "false"}) {
    EXPECT_THAT(ViolationsOf(absl::StrCat(R"({"seed": )", seed, "}")),
                ElementsAre(HasSubstr("; must be a whole number")))
        << seed;
  }
}

TEST(VideoRequestTest, TheServerFetchesNoImage) {
  for (const char* const image :
       {R"({"image_url": "https://example.com/a.png"})", R"({"file_id": "file-1"})", R"("x")",
        R"({"image_url": "data:image/png;base64,*"})", "7", "[7]", R"({"image_url": 7})"}) {
    EXPECT_THAT(ViolationsOf(absl::StrCat(R"({"input_reference": )", image, "}")),
                ElementsAre(HasSubstr("input_reference: must hold the image itself")))
        << image;
  }
}

TEST(VideoRequestTest, NamesOfTheContractBecomeThoseOfHttp) {
  EXPECT_EQ(HttpFieldOf("steps"), "num_inference_steps");
  EXPECT_EQ(HttpFieldOf("image"), "input_reference");
  EXPECT_EQ(HttpFieldOf("request_id"), "Idempotency-Key");
  EXPECT_EQ(HttpFieldOf("labels"), "user");
  EXPECT_EQ(HttpFieldOf("width"), "width");
}

}  // namespace
}  // namespace wan::server
