#include "server/config/model_lora.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/process/command_line.h"

namespace wan::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

absl::StatusOr<CommandLine> Parse(std::vector<const char*> flags) {
  flags.insert(flags.begin(), {"wanserve", "--data-dir", "/d"});
  return ParseCommandLine(static_cast<int>(flags.size()), flags.data());
}

TEST(ModelLoraTest, EveryFormReadsBack) {
  for (const char* const text :
       {"style=/a.safetensors", "m/style=/a", "style@high=/a=b", "m.1/style_2@low=relative path"}) {
    const absl::StatusOr<ModelLora> lora = ParseModelLora(text);
    ASSERT_TRUE(lora.ok()) << lora.status();
    EXPECT_EQ(ToString(*lora), text);
  }
  for (const char* const text : {"", "style", "style=", "=/a", "/style=/a", "m/=/a", "m/n/style=/a",
                                 "style@=/a", "style@only=/a", "st yle=/a"}) {
    EXPECT_FALSE(ParseModelLora(text).ok()) << text;
  }
}

TEST(ModelLoraTest, SchedulesReadBack) {
  for (const char* const text : {"fast=steps:4,shift:5,boundary_step:2", "m/fast=none",
                                 "fast=sigmas:1/0.5,shift:3", "fast=steps:8,guidance_scale:1/2"}) {
    const absl::StatusOr<LoraScheduleSetting> setting = ParseLoraScheduleSetting(text);
    ASSERT_TRUE(setting.ok()) << setting.status();
    EXPECT_EQ(ToString(*setting), text);
  }
  EXPECT_EQ(ParseLoraScheduleSetting("fast=sigmas:1/0.5,shift:3")->schedule,
            (LoraSchedule{.steps = 2, .sigmas = {1, 0.5}, .shift = 3}));
  EXPECT_EQ(ParseLoraScheduleSetting("fast=none")->schedule.steps, 0);
  for (const char* const text : {"", "fast", "=none", "a b=none", "m/n/fast=none"}) {
    EXPECT_FALSE(ParseLoraScheduleSetting(text).ok()) << text;
  }
  for (const char* const text :
       {"", "steps", "steps:x", "steps:0", "steps:4,steps:4", "shift:5", "steps:4,shift:nan",
        "steps:4,shift:1/2", "steps:1.5", "rank:4", "sigmas:", "sigmas:1/x"}) {
    const absl::Status status = ParseLoraScheduleSetting(std::string("fast=") + text).status();
    EXPECT_THAT(std::string(status.message()), HasSubstr("of fast is '")) << text;
  }
}

TEST(ModelLoraTest, FlagsGiveLorasTheirSchedules) {
  const auto good = Parse({"--model", "m=/m", "--lora", "fast@high=/a", "--lora", "fast@low=/b",
                           "--lora-schedule", "fast=steps:4"});
  ASSERT_TRUE(good.ok()) << good.status();
  EXPECT_EQ(good->config.models[0].loras[0].schedule, (LoraSchedule{.steps = 4}));
  EXPECT_EQ(good->config.models[0].loras[1].schedule, (LoraSchedule{.steps = 4}));
  const auto unknown = Parse({"--model", "m=/m", "--lora-schedule", "fast=steps:4"});
  EXPECT_THAT(std::string(unknown.status().message()), HasSubstr("no LoRA of loras has the name"));
  EXPECT_TRUE(
      Parse({"--model", "m=/m", "--lora-dir", "/l", "--lora-schedule", "fast=steps:4"}).ok())
      << "it may lie in the folder";
  const auto no_model =
      Parse({"--model", "m=/m", "--lora-dir", "/l", "--lora-schedule", "n/fast=steps:4"});
  EXPECT_THAT(std::string(no_model.status().message()),
              HasSubstr("lora_schedules has 'n/fast=steps:4' for the unknown model 'n'; the models "
                        "are: m"));
  EXPECT_TRUE(Parse({"--model", "m=/m", "--lora-dir", "m=/l"}).ok());
  const auto stranger = Parse({"--model", "m=/m", "--lora-dir", "n=/l"});
  EXPECT_THAT(std::string(stranger.status().message()), HasSubstr("whose model 'n'"));
}

TEST(ModelLoraTest, FlagsGiveModelsTheirLoras) {
  const auto one = Parse({"--model", "m=/m", "--lora", "a=/a", "--lora", "a2@low=/b"});
  ASSERT_TRUE(one.ok()) << one.status();
  EXPECT_THAT(one->config.models[0].loras,
              ElementsAre(LoraSource{"a", std::nullopt, "/a"},
                          LoraSource{"a2", ExpertRole::kLowNoise, "/b"}));

  const auto two = Parse({"--model", "m=/m", "--model", "n=/n", "--lora", "n/a@high=/a"});
  ASSERT_TRUE(two.ok()) << two.status();
  EXPECT_THAT(two->config.models[0].loras, IsEmpty());
  EXPECT_THAT(two->config.models[1].loras,
              ElementsAre(LoraSource{"a", ExpertRole::kHighNoise, "/a"}));
}

TEST(ModelLoraTest, ALoraNeedsItsModel) {
  const auto error = [](std::vector<const char*> flags) {
    return std::string(Parse(std::move(flags)).status().message());
  };
  EXPECT_THAT(error({"--model", "m=/m", "--model", "n=/n", "--lora", "a=/a"}),
              HasSubstr("loras has 'a' without its model; write MODEL/a with one of m, n"));
  EXPECT_THAT(error({"--model", "m=/m", "--lora", "x/a=/a"}),
              HasSubstr("for the unknown model 'x'; the models are: m"));
  EXPECT_THAT(error({"--lora", "a=/a"}), HasSubstr("the models are: none"));
  EXPECT_THAT(error({"--model", "m=/m", "--lora", "a"}), HasSubstr("--lora is 'a'; must be"));
}

}  // namespace
}  // namespace wan::server
