// Bad requests: each is refused with every violation named, and the server goes on.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "google/protobuf/util/time_util.h"
#include "tests/e2e/test_server.h"

namespace wan::e2e {
namespace {

using google::protobuf::util::TimeUtil;
using testing::UnorderedElementsAreArray;
using Request = wan::v1::GenerationRequest;

struct BadRequestCase {
  const char* name;
  std::function<void(Request&)> spoil;
  std::vector<std::string> fields;  // exactly these
};

std::string GoldenImage() {
  return ReadWholeFile(std::string(WAN_GOLDEN_DIR) + "/pipelines/ti2v-i2v.png");
}

// A PNG whose header claims a size; nothing behind it.
std::string PngClaiming(uint32_t width, uint32_t height) {
  std::string png("\x89PNG\r\n\x1a\n\0\0\0\rIHDR", 16);
  for (const uint32_t side : {width, height}) {
    for (int shift = 24; shift >= 0; shift -= 8) png += static_cast<char>(side >> shift);
  }
  return png + std::string("\x08\x02\0\0\0", 5);
}

const double kNan = std::numeric_limits<double>::quiet_NaN();
const double kInfinity = std::numeric_limits<double>::infinity();

const std::vector<BadRequestCase>& Cases() {
  static const auto* const cases = new std::vector<BadRequestCase>{
      {"no_model", [](Request& r) { r.clear_model(); }, {"model"}},
      {"unknown_model", [](Request& r) { r.set_model("sora"); }, {"model"}},
      {"model_with_a_slash", [](Request& r) { r.set_model("../tiny"); }, {"model"}},
      {"no_prompt", [](Request& r) { r.clear_prompt(); }, {"prompt"}},
      {"blank_prompt", [](Request& r) { r.set_prompt(" \t\n\u3000 "); }, {"prompt"}},
      {"control_characters_only", [](Request& r) { r.set_prompt("\x01\x02\x7f"); }, {"prompt"}},
      {"prompt_of_600_words",
       [](Request& r) {
         std::string text;
         for (int i = 0; i < 600; ++i) text += "cat ";
         r.set_prompt(text);
       },
       {"prompt"}},
      {"prompt_of_a_megabyte",
       [](Request& r) { r.set_prompt(std::string(1 << 20, 'a')); },
       {"prompt"}},
      {"negative_prompt_of_600_words",
       [](Request& r) {
         std::string text;
         for (int i = 0; i < 600; ++i) text += "dog ";
         r.set_negative_prompt(text);
       },
       {"negative_prompt"}},
      {"image_empty", [](Request& r) { r.set_image(""); }, {"image"}},
      {"image_of_a_text", [](Request& r) { r.set_image("a photo of a cat"); }, {"image"}},
      {"background_that_is_no_colour",
       [](Request& r) {
         r.set_image("a photo of a cat");
         r.set_background("white");
       },
       {"image", "background"}},
      {"background_without_an_image",
       [](Request& r) { r.set_background("#ffffff"); },
       {"background"}},
      {"width_0", [](Request& r) { r.set_width(0); }, {"width"}},
      {"width_negative", [](Request& r) { r.set_width(-64); }, {"width"}},
      {"width_1", [](Request& r) { r.set_width(1); }, {"width"}},
      {"width_16", [](Request& r) { r.set_width(16); }, {"width"}},
      {"width_63", [](Request& r) { r.set_width(63); }, {"width"}},
      {"width_80", [](Request& r) { r.set_width(80); }, {"width"}},
      {"width_huge", [](Request& r) { r.set_width(1 << 20); }, {"width"}},
      {"width_largest",
       [](Request& r) { r.set_width(std::numeric_limits<int>::max()); },
       {"width"}},
      {"width_smallest",
       [](Request& r) { r.set_width(std::numeric_limits<int>::min()); },
       {"width"}},
      {"height_0", [](Request& r) { r.set_height(0); }, {"height"}},
      {"height_negative", [](Request& r) { r.set_height(-32); }, {"height"}},
      {"height_33", [](Request& r) { r.set_height(33); }, {"height"}},
      {"height_48", [](Request& r) { r.set_height(48); }, {"height"}},
      {"height_huge", [](Request& r) { r.set_height(32768); }, {"height"}},
      {"both_sides",
       [](Request& r) {
         r.set_width(65);
         r.set_height(31);
       },
       {"width", "height"}},
      {"frames_0", [](Request& r) { r.set_num_frames(0); }, {"num_frames"}},
      {"frames_negative", [](Request& r) { r.set_num_frames(-5); }, {"num_frames"}},
      {"frames_2", [](Request& r) { r.set_num_frames(2); }, {"num_frames"}},
      {"frames_4", [](Request& r) { r.set_num_frames(4); }, {"num_frames"}},
      {"frames_6", [](Request& r) { r.set_num_frames(6); }, {"num_frames"}},
      {"frames_8", [](Request& r) { r.set_num_frames(8); }, {"num_frames"}},
      {"frames_120", [](Request& r) { r.set_num_frames(120); }, {"num_frames"}},
      {"frames_beyond_the_rotary_table",
       [](Request& r) { r.set_num_frames(4097); },
       {"num_frames"}},
      {"frames_largest",
       [](Request& r) { r.set_num_frames(std::numeric_limits<int>::max()); },
       {"num_frames"}},
      {"fps_0", [](Request& r) { r.set_fps(0); }, {"fps"}},
      {"fps_negative", [](Request& r) { r.set_fps(-1); }, {"fps"}},
      {"fps_121", [](Request& r) { r.set_fps(121); }, {"fps"}},
      {"steps_0", [](Request& r) { r.set_steps(0); }, {"steps"}},
      {"steps_negative", [](Request& r) { r.set_steps(-4); }, {"steps"}},
      {"steps_1001", [](Request& r) { r.set_steps(1001); }, {"steps"}},
      {"steps_largest",
       [](Request& r) { r.set_steps(std::numeric_limits<int>::max()); },
       {"steps"}},
      {"guidance_negative", [](Request& r) { r.add_guidance_scale(-0.5); }, {"guidance_scale[0]"}},
      {"guidance_101", [](Request& r) { r.add_guidance_scale(101); }, {"guidance_scale[0]"}},
      {"guidance_nan", [](Request& r) { r.add_guidance_scale(kNan); }, {"guidance_scale[0]"}},
      {"guidance_infinite",
       [](Request& r) { r.add_guidance_scale(kInfinity); },
       {"guidance_scale[0]"}},
      {"guidance_for_an_expert_it_lacks",
       [](Request& r) {
         r.add_guidance_scale(3);
         r.add_guidance_scale(4);
       },
       {"guidance_scale"}},
      {"guidance_three",
       [](Request& r) {
         for (int i = 0; i < 3; ++i) r.add_guidance_scale(3);
       },
       {"guidance_scale"}},
      {"shift_0", [](Request& r) { r.set_shift(0); }, {"shift"}},
      {"shift_negative", [](Request& r) { r.set_shift(-5); }, {"shift"}},
      {"shift_nan", [](Request& r) { r.set_shift(kNan); }, {"shift"}},
      {"shift_101", [](Request& r) { r.set_shift(101); }, {"shift"}},
      {"unknown_solver",
       [](Request& r) { r.set_solver(static_cast<wan::v1::Solver>(99)); },
       {"solver"}},
      {"output_unspecified",
       [](Request& r) { r.add_outputs(wan::v1::OUTPUT_KIND_UNSPECIFIED); },
       {"outputs[0]"}},
      {"output_unknown",
       [](Request& r) {
         r.add_outputs(wan::v1::OUTPUT_KIND_MP4);
         r.add_outputs(static_cast<wan::v1::OutputKind>(77));
       },
       {"outputs[1]"}},
      {"output_twice",
       [](Request& r) {
         r.add_outputs(wan::v1::OUTPUT_KIND_MP4);
         r.add_outputs(wan::v1::OUTPUT_KIND_MP4);
       },
       {"outputs[1]"}},
      {"priority_101", [](Request& r) { r.set_priority(101); }, {"priority"}},
      {"priority_low", [](Request& r) { r.set_priority(-101); }, {"priority"}},
      {"deadline_past",
       [](Request& r) { *r.mutable_deadline() = TimeUtil::SecondsToTimestamp(1); },
       {"deadline"}},
      {"deadline_no_timestamp",
       [](Request& r) { r.mutable_deadline()->set_nanos(2'000'000'000); },
       {"deadline"}},
      {"request_id_too_long",
       [](Request& r) { r.set_request_id(std::string(129, 'x')); },
       {"request_id"}},
      {"65_labels",
       [](Request& r) {
         for (int i = 0; i < 65; ++i) (*r.mutable_labels())["k" + std::to_string(i)] = "v";
       },
       {"labels"}},
      {"preview_interval_negative",
       [](Request& r) { r.set_preview_interval(-1); },
       {"preview_interval"}},
      {"image_no_image", [](Request& r) { r.set_image("hello"); }, {"image"}},
      {"image_one_byte", [](Request& r) { r.set_image(std::string(1, '\0')); }, {"image"}},
      {"image_cut", [](Request& r) { r.set_image(GoldenImage().substr(0, 200)); }, {"image"}},
      {"image_header_only",
       [](Request& r) { r.set_image(GoldenImage().substr(0, 33)); },
       {"image"}},
      {"image_of_a_terapixel",
       [](Request& r) { r.set_image(PngClaiming(1 << 20, 1 << 20)); },
       {"image"}},
      {"image_without_pixels", [](Request& r) { r.set_image(PngClaiming(0, 0)); }, {"image"}},
      {"image_is_a_video",
       [](Request& r) {
         r.set_image(
             std::string("\0\0\0\x18"
                         "ftypmp42",
                         12));
       },
       {"image"}},
      {"image_jpeg_start_only", [](Request& r) { r.set_image("\xff\xd8\xff\xe0"); }, {"image"}},
      {"image_larger_than_allowed",
       [](Request& r) { r.set_image(GoldenImage() + std::string(33 << 20, '\0')); },
       {"image"}},
      {"initial_latents_of_another_file",
       [](Request& r) { r.mutable_initial_latents()->set_data("PNG"); },
       {"initial_latents"}},
      {"initial_latents_larger_than_allowed",
       [](Request& r) { r.mutable_initial_latents()->set_data(std::string(33 << 20, '\0')); },
       {"initial_latents"}},
      {"latents_without_a_source", [](Request& r) { r.mutable_latents(); }, {"latents"}},
      {"latents_of_no_job",
       [](Request& r) { r.mutable_latents()->set_job("jobs/none"); },
       {"latents.job"}},
      {"latents_of_a_folder",
       [](Request& r) { r.mutable_latents()->set_job("jobs/../tokens"); },
       {"latents.job"}},
      {"strength_without_latents", [](Request& r) { r.set_strength(0.5); }, {"strength"}},
      {"strength_nan", [](Request& r) { r.set_strength(kNan); }, {"strength"}},
      {"everything",
       [](Request& r) {
         r.clear_prompt();
         r.set_width(1);
         r.set_height(1);
         r.set_num_frames(2);
         r.set_fps(0);
         r.set_steps(0);
         r.add_guidance_scale(-1);
         r.set_shift(0);
         r.set_priority(1000);
         r.set_image("x");
       },
       {"prompt", "width", "height", "num_frames", "fps", "steps", "guidance_scale[0]", "shift",
        "priority", "image"}},
  };
  return *cases;
}

class RejectionTest : public testing::Test {
 protected:
  TemporaryFolder folder_;
  TestServer server_{{.data_dir = folder_.path()}};
};

TEST_F(RejectionTest, TheTableIsLongEnough) { EXPECT_GE(Cases().size(), 60u); }

TEST_F(RejectionTest, EveryBadRequestNamesItsFieldsAndNothingElse) {
  for (const BadRequestCase& bad : Cases()) {
    SCOPED_TRACE(bad.name);
    wan::v1::CreateJobRequest create;
    *create.mutable_request() = TinyRequest();
    bad.spoil(*create.mutable_request());
    grpc::ClientContext context;
    wan::v1::Job job;
    const grpc::Status status = server_.videos().CreateJob(&context, create, &job);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << status.error_message();
    EXPECT_THAT(ViolatedFields(status), UnorderedElementsAreArray(bad.fields))
        << status.error_message();
  }
  // Nothing of it was accepted, and the server does good work.
  grpc::ClientContext context;
  wan::v1::ListJobsResponse jobs;
  ASSERT_TRUE(server_.videos().ListJobs(&context, {}, &jobs).ok());
  EXPECT_EQ(jobs.jobs_size(), 0);
  EXPECT_EQ(server_.Await(server_.Submit(TinyRequest()).name()).state(),
            wan::v1::JOB_STATE_COMPLETED);
}

TEST_F(RejectionTest, GenerateRefusesAsCreateJobDoes) {
  grpc::ClientContext context;
  wan::v1::GenerateRequest request;
  *request.mutable_request() = TinyRequest();
  request.mutable_request()->set_width(33);
  const auto reader = server_.videos().Generate(&context, request);
  wan::v1::Event event;
  EXPECT_FALSE(reader->Read(&event));
  const grpc::Status status = reader->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(ViolatedFields(status), testing::ElementsAre("width"));
}

TEST_F(RejectionTest, UnknownNamesAreNotFoundAndBadOnesInvalid) {
  const auto code = [&](const std::string& name) {
    grpc::ClientContext context;
    wan::v1::GetJobRequest request;
    request.set_name(name);
    wan::v1::Job job;
    return server_.videos().GetJob(&context, request, &job).error_code();
  };
  EXPECT_EQ(code(server_.Submit(TinyRequest()).name() + "0"), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(code(""), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(code("job/1"), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(code("jobs/../../etc/passwd"), grpc::StatusCode::INVALID_ARGUMENT);
}

}  // namespace
}  // namespace wan::e2e
