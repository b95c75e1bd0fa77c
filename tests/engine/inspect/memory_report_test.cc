#include "engine/inspect/memory_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace wan {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using Json = nlohmann::ordered_json;

constexpr uint64_t kGiB = uint64_t{1} << 30;

Json Report(const MemoryQuestion& question) {
  const auto report = MemoryReport(question);
  EXPECT_TRUE(report.ok()) << report.status();
  return report.ok() ? *report : Json::object();
}

TEST(MemoryReportTest, TellsWhereWeightsLiveAndWhatEachStageTakes) {
  const Json report = Report({.path = "synthetic:t2v-a14b",
                              .device_memory_limit = 24 * kGiB,
                              .residency = {{ModelComponent::kVae, ResidencyPolicy::kHost}},
                              .shapes = {{832, 480, 81}, {3840, 2176, 241}}});
  EXPECT_EQ(report["model"], "t2v-a14b");
  EXPECT_LT(report["job_memory"].get<uint64_t>(), 23 * kGiB);
  EXPECT_EQ(report["components"].size(), 4u);
  EXPECT_EQ(report["fits"], false);
  const Json& fitting = report["videos"][0];
  EXPECT_EQ(fitting["shape"], "832x480x81");
  EXPECT_EQ(fitting["policies"]["transformer"], "stream");
  EXPECT_EQ(fitting["policies"]["vae"], "host");
  // Both experts and the VAE; the text encoder stays.
  EXPECT_EQ(fitting["policies"]["text_encoder"], "resident");
  EXPECT_EQ(fitting["host_bytes"].get<uint64_t>(),
            report["components"][1]["bytes"].get<uint64_t>() +
                report["components"][2]["bytes"].get<uint64_t>() +
                report["components"][3]["bytes"].get<uint64_t>());
  std::vector<std::string> stages;
  for (const Json& stage : fitting["stages"]) stages.push_back(stage["stage"]);
  EXPECT_THAT(stages, testing::ElementsAre("T5_Encoding", "Step_Inference (high noise)",
                                           "Step_Inference (low noise)", "VAE_Decoding"));
  const Json& refused = report["videos"][1];
  EXPECT_EQ(refused["fits"], false);
  EXPECT_THAT(refused["message"].get<std::string>(), HasSubstr("At this size "));

  EXPECT_THAT(MemoryReportText(report),
              AllOf(StartsWith("checkpoint    synthetic:t2v-a14b\n"
                               "model         t2v-a14b, in bf16, quality exact\n"),
                    HasSubstr("832x480x81: at most "), HasSubstr("transformer stream"),
                    HasSubstr("3840x2176x241: does not fit\n  num_frames: a video of ")));
}

TEST(MemoryReportTest, VideosOfAnotherQuality) {
  const Json report =
      Report({.path = WAN_CHECKPOINT_DIR "/ti2v-5b/original", .quality = Quality::kHigh});
  EXPECT_EQ(report["quality"], "high");
  EXPECT_EQ(report["fits"], true);
  EXPECT_THAT(MemoryReportText(report), HasSubstr("in bf16, quality high\n"));
}

TEST(MemoryReportTest, TheDefaultShapeWithoutALimitIsAllResident) {
  const Json report = Report({.path = WAN_CHECKPOINT_DIR "/ti2v-5b/original"});
  ASSERT_EQ(report["videos"].size(), 1u);
  EXPECT_EQ(report["videos"][0]["shape"], "1280x704x121");
  EXPECT_EQ(report["videos"][0]["policies"]["transformer"], "resident");
  EXPECT_EQ(report["fits"], true);
  EXPECT_THAT(MemoryReportText(report), HasSubstr("no limit"));
}

TEST(MemoryReportTest, AnImageAddsItsEncoding) {
  const MemoryQuestion text{.path = "synthetic:ti2v-5b"};
  MemoryQuestion image = text;
  image.image = true;
  EXPECT_THAT(Report(text)["videos"][0].dump(), Not(HasSubstr("VAE_Encoding")));
  EXPECT_THAT(Report(image)["videos"][0].dump(), HasSubstr("VAE_Encoding"));
  // A model that takes nothing else needs no asking.
  EXPECT_THAT(Report({.path = "synthetic:i2v-a14b"})["videos"][0].dump(),
              HasSubstr("VAE_Encoding"));
}

TEST(MemoryReportTest, SaysWhatIsWrong) {
  EXPECT_EQ(MemoryReport({.path = "/nowhere"}).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(
      MemoryReport({.path = "synthetic:ti2v-5b", .device_memory_limit = kGiB}).status().code(),
      absl::StatusCode::kInvalidArgument);
  const Json odd = Report({.path = "synthetic:ti2v-5b", .shapes = {{1280, 720, 121}}});
  EXPECT_THAT(odd["videos"][0]["message"].get<std::string>(), HasSubstr("height: is 720"));
}

}  // namespace
}  // namespace wan
