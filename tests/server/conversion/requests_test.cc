// What the contract's texts and fields may be: names, page tokens, validation.
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "engine/api/errors.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/conversion/convert.h"
#include "server/conversion/names.h"
#include "server/conversion/page_token.h"
#include "server/conversion/validation.h"

namespace wan::server {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using wan::v1::GenerationRequest;
using wan::v1::JOB_STATE_FAILED;
using wan::v1::JOB_STATE_QUEUED;

TEST(NamesTest, NewNamesAreValidAndDiffer) {
  const std::string name = NewJobName();
  EXPECT_TRUE(CheckJobName(name, "name").ok()) << name;
  EXPECT_EQ(JobIdOf(name).size(), 20u);
  EXPECT_NE(NewJobName(), name);
}

TEST(NamesTest, ArtifactNames) {
  EXPECT_EQ(ArtifactName("jobs/a-1", "video.mp4"), "jobs/a-1/artifacts/video.mp4");
  const auto ref = ParseArtifactName("jobs/a-1/artifacts/video.mp4", "name");
  ASSERT_TRUE(ref.ok());
  EXPECT_EQ(ref->job, "jobs/a-1");
  EXPECT_EQ(ref->file, "video.mp4");
  for (const char* bad :
       {"", "jobs/a", "jobs/a/artifacts/", "jobs/a/artifacts/..", "jobs/a/artifacts/.x",
        "jobs/a/artifacts/x/y", "jobs/../artifacts/x", "jobs//artifacts/x", "a/artifacts/x"}) {
    const auto violations = FieldViolationsOf(ParseArtifactName(bad, "field").status());
    ASSERT_EQ(violations.size(), 1u) << bad;
    EXPECT_EQ(violations[0].field, "field");
  }
}

TEST(NamesTest, ModelNames) {
  EXPECT_EQ(BareModelName("models/ti2v-5b"), "ti2v-5b");
  EXPECT_EQ(BareModelName("ti2v-5b"), "ti2v-5b");
}

TEST(PageTokenTest, BelongsToItsList) {
  const std::string token = MakePageToken("a,42", "jobs of today");
  EXPECT_EQ(*ParsePageToken(token, "jobs of today"), "a,42");
  const absl::Status other = ParsePageToken(token, "jobs").status();
  EXPECT_EQ(FieldViolationsOf(other).at(0).field, "page_token");
  EXPECT_THAT(std::string(other.message()), testing::HasSubstr("belongs to another list"));
}

TEST(PageTokenTest, NonsenseIsAViolation) {
  for (const char* token : {"x", "42", "!!", "MSwwLDA", "MiwxLDA", "MSwxLDAsMA"}) {
    EXPECT_EQ(FieldViolationsOf(ParsePageToken(token, "").status()).at(0).field, "page_token")
        << token;
  }
}

TEST(NamesTest, AHugeNameIsCutInTheMessage) {
  const absl::Status status = CheckJobName(std::string(1 << 20, 'X'), "name");
  EXPECT_LT(status.message().size(), 1000u);
}

TEST(PageTokenTest, AHugeTokenIsNotRead) {
  // Would be split into as many parts.
  EXPECT_FALSE(ParsePageToken(absl::WebSafeBase64Escape(std::string(1 << 20, ',')), "").ok());
}

std::vector<std::string> TooLarge(const GenerationRequest& request) {
  std::vector<std::string> fields;
  for (const FieldViolation& violation : ValidateSizes(request)) fields.push_back(violation.field);
  return fields;
}

TEST(SizesTest, OneViolationAFieldHoweverManyElements) {
  GenerationRequest request;
  for (int i = 0; i < 100'000; ++i) {
    request.add_outputs(static_cast<wan::v1::OutputKind>(9));
    request.add_loras();
    request.add_guidance_scale(-1);
    (*request.mutable_labels())[std::to_string(i)] = "";
  }
  EXPECT_THAT(TooLarge(request), ElementsAre("guidance_scale", "outputs", "labels", "loras"));
  EXPECT_EQ(ValidateSizes(request)[1].description, "has 100000 entries; must have at most 3");
}

TEST(SizesTest, TextsAndImageHaveALimit) {
  const std::string text(size_t{33} << 20, 'x');
  GenerationRequest request;
  request.set_model(text);
  request.set_prompt(text);
  request.set_negative_prompt(text);
  request.set_image(text);
  request.set_request_id(text);
  (*request.mutable_labels())["key"] = text;
  EXPECT_THAT(TooLarge(request),
              ElementsAre("model", "prompt", "negative_prompt", "image", "request_id"));
  GenerationRequest labelled;
  (*labelled.mutable_labels())["key"] = text;
  EXPECT_THAT(TooLarge(labelled), ElementsAre("labels"));
  GenerationRequest patched;
  patched.add_loras()->set_name(text);
  EXPECT_THAT(TooLarge(patched), ElementsAre("loras"));
}

TEST(BackgroundTest, IsAColourInHexadecimal) {
  GenerationRequest request;
  request.set_model("m");
  request.set_image("PNG");
  const auto violations = [&](const std::string& text) {
    request.set_background(text);
    return ValidateRequest(request, absl::UnixEpoch());
  };
  for (const char* const right : {"#ffffff", "#000000", "#12aBCd"}) {
    EXPECT_THAT(violations(right), IsEmpty()) << right;
  }
  for (const char* const wrong :
       {"", "#", "white", "#fff", "ffffff", "#fffffff", "#ffffffff", "#0x1234", "#-12345",
        "#+12345", "# 12345", "#gggggg", "#12345\n"}) {
    EXPECT_EQ(violations(wrong).size(), 1u) << wrong;
  }
  EXPECT_THAT(violations("r\"d"),
              ElementsAre(FieldViolation{
                  "background", "is 'r\\\"d'; must be a colour as #rrggbb, for example #ffffff"}));
}

TEST(SizesTest, TheLargestValidRequestPasses) {
  GenerationRequest request;
  request.set_image(std::string(size_t{32} << 20, 'x'));
  request.set_prompt(std::string(size_t{64} << 10, 'x'));
  for (int i = 0; i < 64; ++i) (*request.mutable_labels())[std::to_string(i)] = "";
  for (int i = 0; i < 8; ++i) request.add_loras();
  for (int i = 1; i <= 3; ++i) request.add_outputs(static_cast<wan::v1::OutputKind>(i));
  EXPECT_THAT(TooLarge(request), IsEmpty());
  (*request.mutable_labels())["one more"] = "";
  EXPECT_THAT(TooLarge(request), ElementsAre("labels"));
}

struct Case {
  std::string name;
  std::string field;  // the only violation; empty: none
  std::function<void(GenerationRequest&)> change;
};

class FieldTest : public testing::TestWithParam<Case> {};

const absl::Time kNow = absl::FromUnixSeconds(1000);

TEST(ValidationTest, ATextThatIsNotUtf8IsAViolationOfItsField) {
  GenerationRequest request;
  request.set_model("m");
  EXPECT_THAT(ValidateSizes(request), IsEmpty());
  (*request.mutable_labels())["team"] = "caf\xe9";
  const std::vector<FieldViolation> violations = ValidateSizes(request);
  ASSERT_EQ(violations.size(), 1u);
  EXPECT_EQ(violations[0].field, "labels[team]");
  EXPECT_EQ(violations[0].description, "is not UTF-8; must be a text in UTF-8");
}

TEST_P(FieldTest, Fields) {
  GenerationRequest request;
  request.set_model("m");
  GetParam().change(request);
  std::vector<std::string> fields;
  for (const FieldViolation& violation : ValidateRequest(request, kNow)) {
    fields.push_back(violation.field);
    EXPECT_FALSE(violation.description.empty());
  }
  if (GetParam().field.empty()) {
    EXPECT_THAT(fields, IsEmpty());
  } else {
    EXPECT_THAT(fields, ElementsAre(GetParam().field));
  }
}

std::string Repeat(const std::string& text, int times) {
  std::string result;
  for (int i = 0; i < times; ++i) result += text;
  return result;
}

void SetDeadline(GenerationRequest& request, int64_t seconds, int nanos) {
  request.mutable_deadline()->set_seconds(seconds);
  request.mutable_deadline()->set_nanos(nanos);
}

INSTANTIATE_TEST_SUITE_P(
    Table, FieldTest,
    testing::Values(
        Case{"Plain", "", [](auto&) {}},  //
        Case{"NoModel", "model", [](auto& r) { r.clear_model(); }},
        Case{"LowestPriority", "", [](auto& r) { r.set_priority(-100); }},
        Case{"HighestPriority", "", [](auto& r) { r.set_priority(100); }},
        Case{"TooLowPriority", "priority", [](auto& r) { r.set_priority(-101); }},
        Case{"TooHighPriority", "priority", [](auto& r) { r.set_priority(101); }},
        Case{"DeadlineAhead", "", [](auto& r) { SetDeadline(r, 1000, 1); }},
        Case{"DeadlineNow", "deadline", [](auto& r) { SetDeadline(r, 1000, 0); }},
        Case{"DeadlinePast", "deadline", [](auto& r) { SetDeadline(r, -5, 0); }},
        Case{"DeadlineNanos", "deadline", [](auto& r) { SetDeadline(r, 2000, 1'000'000'000); }},
        Case{"DeadlineYear10000", "deadline", [](auto& r) { SetDeadline(r, 253'402'300'800, 0); }},
        Case{"LongestId", "", [](auto& r) { r.set_request_id(Repeat("\u00e9", 128)); }},
        Case{"TooLongId", "request_id", [](auto& r) { r.set_request_id(Repeat("x", 129)); }},
        Case{"UnknownQuality", "quality",
             [](auto& r) { r.set_quality(static_cast<wan::v1::Quality>(9)); }},
        Case{"UnknownDecoder", "decoder",
             [](auto& r) { r.set_decoder(static_cast<wan::v1::Decoder>(9)); }},
        Case{"UnknownVaePrecision", "vae_precision",
             [](auto& r) { r.set_vae_precision(static_cast<wan::v1::VaePrecision>(9)); }},
        Case{"UnknownSolver", "solver",
             [](auto& r) { r.set_solver(static_cast<wan::v1::Solver>(9)); }},
        Case{"AllOutputs", "",
             [](auto& r) {
               r.add_outputs(wan::v1::OUTPUT_KIND_MP4);
               r.add_outputs(wan::v1::OUTPUT_KIND_LOSSLESS_MKV);
               r.add_outputs(wan::v1::OUTPUT_KIND_LATENTS);
             }},
        Case{"UnspecifiedOutput", "outputs[0]",
             [](auto& r) { r.add_outputs(wan::v1::OUTPUT_KIND_UNSPECIFIED); }},
        Case{"UnknownOutput", "outputs[1]",
             [](auto& r) {
               r.add_outputs(wan::v1::OUTPUT_KIND_MP4);
               r.add_outputs(static_cast<wan::v1::OutputKind>(9));
             }},
        Case{"OutputTwice", "outputs[1]",
             [](auto& r) {
               r.add_outputs(wan::v1::OUTPUT_KIND_MP4);
               r.add_outputs(wan::v1::OUTPUT_KIND_MP4);
             }},
        Case{"ManyLabels", "",
             [](auto& r) {
               for (int i = 0; i < 64; ++i) (*r.mutable_labels())[std::to_string(i)] = "";
             }},
        Case{"LongestLabel", "",
             [](auto& r) { (*r.mutable_labels())[Repeat("k", 63)] = Repeat("v", 255); }},
        Case{"EmptyLabelKey", "labels[]", [](auto& r) { (*r.mutable_labels())[""] = "v"; }},
        Case{"TooLongLabelKey", "labels[" + Repeat("k", 63) + "]",
             [](auto& r) { (*r.mutable_labels())[Repeat("k", 64)] = "v"; }},
        Case{"TooLongLabelValue", "labels[k]",
             [](auto& r) { (*r.mutable_labels())["k"] = Repeat("v", 256); }}),
    [](const auto& value) { return value.param.name; });

}  // namespace
}  // namespace wan::server
