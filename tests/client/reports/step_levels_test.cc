#include "client/reports/step_levels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>

namespace wan::client::reports {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// The seconds of a published benchmark's steps.
std::vector<double> Series(const std::string& name) {
  std::ifstream file(std::string(WAN_SERIES_DIR "/") + name + ".txt");
  EXPECT_TRUE(file) << name;
  std::vector<double> seconds;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("#")) continue;
    std::istringstream fields(line);
    int step = 0;
    double value = 0;
    fields >> step >> value;
    seconds.push_back(value);
  }
  return seconds;
}

TEST(StepLevelsTest, FindsTheSlowStretchThatNobodySaw) {
  const std::vector<double> seconds = Series("03_Max_Quality_704p");
  ASSERT_EQ(seconds.size(), 50u);
  const StepLevels found = FindStepLevels(seconds);
  ASSERT_EQ(found.levels.size(), 4u);
  // It began slowly, and step 2 is where that ended.
  EXPECT_NEAR(found.levels[0].seconds, 15.1, 0.05);
  EXPECT_EQ(found.levels[1].first, 3);
  EXPECT_EQ(found.levels[1].last, 11);
  EXPECT_NEAR(found.levels[1].seconds, 6.89, 0.02);
  // From 6.9 to 15.05 s, within step 12, until step 45; steps 42 and 43 were an interruption.
  EXPECT_EQ(found.levels[2].first, 13);
  EXPECT_EQ(found.levels[2].last, 45);
  EXPECT_NEAR(found.levels[2].seconds, 15.05, 0.01);
  EXPECT_THAT(found.levels[2].exceptions, ::testing::Contains(42));
  EXPECT_EQ(found.levels[3].first, 47);
  EXPECT_NEAR(found.levels[3].seconds, 6.89, 0.01);
  ASSERT_EQ(found.changes.size(), 3u);
  EXPECT_EQ(found.changes[0].within, 2);
  EXPECT_EQ(found.changes[1].within, 12);
  EXPECT_EQ(found.changes[2].within, 46);
}

TEST(StepLevelsTest, FindsTheFallInTheLongVideo) {
  const StepLevels found = FindStepLevels(Series("04_15s_50steps_720p"));
  ASSERT_EQ(found.levels.size(), 2u);
  EXPECT_NEAR(found.levels[0].seconds, 48.48, 0.02);
  EXPECT_NEAR(found.levels[1].seconds, 22.45, 0.02);
  EXPECT_EQ(found.levels[1].first, 37);
  EXPECT_EQ(found.levels[1].last, 49);
  EXPECT_THAT(found.levels[0].exceptions, ElementsAre(34)) << "42.16 s between equal steps";
  EXPECT_EQ(found.changes[0].within, 36);
}

TEST(StepLevelsTest, DriftOfThreePercentIsNoChange) {
  const StepLevels found = FindStepLevels(Series("02_Efficiency_Quality_704p"));
  ASSERT_EQ(found.levels.size(), 1u);
  EXPECT_THAT(found.changes, IsEmpty());
  EXPECT_NEAR(found.levels[0].seconds, 12.85, 0.05);
}

TEST(StepLevelsTest, AColdFirstStepIsNoChange) {
  const StepLevels found = FindStepLevels(Series("01_Speed_Preview_704p"));
  ASSERT_EQ(found.levels.size(), 1u);
  EXPECT_THAT(found.changes, IsEmpty()) << "13.68 s before steps of 12.5 to 12.8 s";
  EXPECT_THAT(FindStepLevels({3, 1, 1, 1, 1, 1, 1}).unsettled, ElementsAre(0));
}

TEST(StepLevelsTest, NoiseIsNoChange) {
  std::vector<double> seconds;
  for (int i = 0; i < 40; ++i) seconds.push_back(1 + 0.05 * ((i * 7919) % 11) / 11);
  EXPECT_THAT(FindStepLevels(seconds).changes, IsEmpty());
}

TEST(StepLevelsTest, FewSteps) {
  EXPECT_THAT(FindStepLevels({}).levels, IsEmpty());
  EXPECT_EQ(FindStepLevels({3}).levels.size(), 1u);
  EXPECT_EQ(FindStepLevels({3, 4}).levels.size(), 1u);
  EXPECT_THAT(FindStepLevels({1, 2, 4, 8}).changes, IsEmpty());
}

TEST(StepLevelsTest, AThousandStepsTakeNoTime) {
  std::vector<double> seconds(500, 1.0);
  seconds.resize(1000, 2.0);
  const StepLevels found = FindStepLevels(seconds);
  ASSERT_EQ(found.levels.size(), 2u);
  EXPECT_EQ(found.levels[1].first, 500);
  EXPECT_EQ(found.changes[0].within, std::nullopt);
}

}  // namespace
}  // namespace wan::client::reports
