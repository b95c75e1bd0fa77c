#include "engine/schedulers/flow_schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/engine/schedulers/golden_samplers.h"

namespace wan {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::Gt;
using testing::HasSubstr;
using testing::Le;

std::vector<double> GoldenTimesteps(const std::string& prefix) {
  const RawTensor& tensor = GoldenSamplers().at(prefix + "timesteps");
  if (tensor.dtype == "I64") {
    const auto values = tensor.As<int64_t>();
    return {values.begin(), values.end()};
  }
  const auto values = tensor.As<float>();
  return {values.begin(), values.end()};
}

class GoldenScheduleTest : public testing::TestWithParam<GoldenSampler> {};

TEST_P(GoldenScheduleTest, EqualsTheReferenceToTheLastBit) {
  const GoldenSampler& c = GetParam();
  const auto schedule = MakeFlowSchedule(c.solver, c.steps, c.shift);
  ASSERT_TRUE(schedule.ok()) << schedule.status();
  EXPECT_EQ(schedule->sigmas, GoldenSamplers().at(c.Prefix() + "sigmas").As<float>());
  EXPECT_EQ(schedule->timesteps, GoldenTimesteps(c.Prefix()));
}

INSTANTIATE_TEST_SUITE_P(All, GoldenScheduleTest, EveryGoldenSampler());

// The numbers of tests/golden/DIFFERENCES.md, by item.

TEST(Differences, Item1UniPcStartsAt0999AndHasNoLowerEnd) {
  const auto schedule = MakeFlowSchedule("unipc", 4, 5);
  ASSERT_TRUE(schedule.ok());
  const float first = 0.999f;
  EXPECT_FLOAT_EQ(schedule->sigmas[0], 5 * first / (1 + 4 * first));
  EXPECT_FLOAT_EQ(schedule->sigmas[2], 5 * first / 2 / (1 + 4 * first / 2));
  EXPECT_EQ(schedule->sigmas[4], 0);
  const auto theirs = GoldenSamplers().at("diffusers_unipc/4_5/sigmas").As<float>();
  float gap = 0;
  for (size_t i = 0; i < theirs.size(); ++i) {
    gap = std::max(gap, std::abs(theirs[i] - schedule->sigmas[i]));
  }
  EXPECT_NEAR(gap, 0.0012, 1e-4);
}

TEST(Differences, Item2TimestepsAreCutNotRounded) {
  const auto schedule = MakeFlowSchedule("unipc", 8, 5);
  ASSERT_TRUE(schedule.ok());
  EXPECT_THAT(schedule->timesteps, ElementsAre(999, 972, 937, 892, 833, 749, 624, 416));
  // 952.15 goes to the model as 952, and to the solver as 0.95215.
  const auto five = MakeFlowSchedule("unipc", 5, 5);
  EXPECT_EQ(five->timesteps[1], 952);
  EXPECT_NEAR(five->sigmas[1], 0.95215, 1e-5);
}

TEST(Differences, Item3DpmPlusPlusStartsAtOne) {
  const auto schedule = MakeFlowSchedule("dpm++", 6, 12);
  ASSERT_TRUE(schedule.ok());
  EXPECT_EQ(schedule->sigmas[0], 1);
  EXPECT_THAT(schedule->timesteps, ElementsAre(1000, 983, 960, 923, 857, 705));
}

TEST(Differences, Item4EulerTimestepsAreNotCut) {
  const std::vector<double> trained = {1000, 750, 500, 250};
  const auto schedule = MakeEulerSchedule(trained, 5);
  ASSERT_TRUE(schedule.ok());
  EXPECT_THAT(schedule->timesteps,
              ElementsAre(1000, 937.5, testing::DoubleNear(833.3333, 1e-3), 625));
  EXPECT_EQ(schedule->timesteps, GoldenTimesteps("euler/4_5/"));
  EXPECT_EQ(schedule->sigmas, GoldenSamplers().at("euler/4_5/sigmas").As<float>());
}

// The timesteps that the programs of FastWan and rCM give to their models; the levels stay exact.
TEST(FlowSchedule, RoundsTheTimestepsOfTheModelAlone) {
  const std::vector<double> fast_wan = {1000, 280, 120};
  const auto whole = MakeEulerSchedule(fast_wan, 8, TimestepRounding::kWhole);
  ASSERT_TRUE(whole.ok());
  EXPECT_THAT(whole->timesteps, ElementsAre(1000, 757, 522));
  EXPECT_EQ(whole->sigmas, MakeEulerSchedule(fast_wan, 8)->sigmas);
  EXPECT_FLOAT_EQ(whole->sigmas[1], 0.756756757f);

  // Between 512 and 1024 the numbers in bf16 are the multiples of 4.
  const std::vector<double> rcm = {987.65, 938, 934, 852.9, 608.98};
  const auto bf16 = MakeEulerSchedule(rcm, 1, TimestepRounding::kBFloat16);
  ASSERT_TRUE(bf16.ok());
  EXPECT_THAT(bf16->timesteps, ElementsAre(988, 936, 936, 852, 608));
}

TEST(Differences, Item5TheShiftIsAppliedOnce) {
  const auto schedule = MakeFlowSchedule("dpm++", 2, 3);
  ASSERT_TRUE(schedule.ok());
  // 0.5 -> 3 * 0.5 / (1 + 2 * 0.5); a second time it would be 0.9.
  EXPECT_FLOAT_EQ(schedule->sigmas[1], 0.75f);
  const auto unshifted = MakeFlowSchedule("dpm++", 2, 1);
  EXPECT_FLOAT_EQ(unshifted->sigmas[1], 0.5f);
}

TEST(FlowSchedule, EverySolverFallsStrictlyOverTheWholeRange) {
  for (const std::string& name : FlowSolverNames()) {
    for (const int steps : {1, 2, 3, 50, kMaxFlowSteps}) {
      for (const double shift : {kMinFlowShift, 1.0, 5.0, kMaxFlowShift}) {
        SCOPED_TRACE(testing::Message() << name << " " << steps << " " << shift);
        const auto schedule = MakeFlowSchedule(name, steps, shift);
        ASSERT_TRUE(schedule.ok()) << schedule.status();
        ASSERT_EQ(schedule->sigmas.size(), static_cast<size_t>(steps) + 1);
        ASSERT_EQ(schedule->timesteps.size(), static_cast<size_t>(steps));
        EXPECT_LE(schedule->sigmas.front(), 1);
        EXPECT_EQ(schedule->sigmas.back(), 0);
        for (int i = 0; i < steps; ++i) ASSERT_GT(schedule->sigmas[i], schedule->sigmas[i + 1]);
        EXPECT_THAT(schedule->timesteps, Each(Le(1000)));
        for (int i = 0; i < steps; ++i) {
          const double exact = 1000.0 * schedule->sigmas[i];
          ASSERT_LT(std::abs(schedule->timesteps[i] - exact), 1.0001) << i;
        }
      }
    }
  }
}

TEST(FlowSchedule, NamesAreThoseOfTheRequests) {
  EXPECT_THAT(FlowSolverNames(), ElementsAre("dpm++", "euler", "lcm", "unipc"));
}

TEST(FlowSchedule, SaysWhatIsWrong) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const struct {
    const char* name;
    int steps;
    double shift;
    const char* message;
  } cases[] = {
      {"ddim", 4, 5, "solver is 'ddim'; must be one of dpm++, euler, lcm, unipc"},
      {"", 4, 5, "solver is ''"},
      {"unipc", 0, 5, "steps is 0; must be from 1 to 1000"},
      {"unipc", -3, 5, "steps is -3; must be from 1 to 1000"},
      {"euler", 1001, 5, "steps is 1001"},
      {"dpm++", 4, 0, "shift is 0; must be from 0.01 to 100"},
      {"dpm++", 4, -1, "shift is -1"},
      {"dpm++", 4, 101, "shift is 101"},
      {"dpm++", 4, nan, "shift is nan"},
  };
  for (const auto& c : cases) {
    const auto schedule = MakeFlowSchedule(c.name, c.steps, c.shift);
    EXPECT_EQ(schedule.status().code(), absl::StatusCode::kInvalidArgument) << c.message;
    EXPECT_THAT(std::string(schedule.status().message()), HasSubstr(c.message));
  }
}

TEST(FlowSchedule, RefusesTimestepsThatDoNotFall) {
  const std::vector<std::vector<double>> wrong = {{},         {1000.5},   {1000, 0},     {1000, -5},
                                                  {500, 500}, {250, 500}, {std::nan("")}};
  for (const auto& timesteps : wrong) {
    EXPECT_EQ(MakeEulerSchedule(timesteps, 5).status().code(), absl::StatusCode::kInvalidArgument)
        << testing::PrintToString(timesteps);
  }
  const std::vector<double> rising = {250, 500};
  EXPECT_THAT(std::string(MakeEulerSchedule(rising, 5).status().message()),
              HasSubstr("timesteps[1] is 500"));
}

}  // namespace
}  // namespace wan
