// What every row of the table must hold, so that readers of a checkpoint can tell families apart.
#include "engine/families/model_family.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <tuple>

namespace wan {
namespace {

TEST(ModelFamilyTest, EachFamilyHasItsRowAndItsName) {
  const std::span<const ModelFamily> rows = ModelFamilies();
  ASSERT_EQ(rows.size(), kFamilyIds.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(rows[i].id, kFamilyIds[i]);
    EXPECT_EQ(&FindModelFamily(rows[i].id), &rows[i]);
    EXPECT_EQ(ParseFamily(NameOf(rows[i].id)), rows[i].id);
  }
}

TEST(ModelFamilyTest, EachLayoutTellsTheFamiliesApart) {
  std::set<std::tuple<std::string_view, size_t, int64_t>> original;
  std::set<std::tuple<size_t, ImageRole, VaeKind, int64_t>> diffusers;
  for (const ModelFamily& family : ModelFamilies()) {
    SCOPED_TRACE(NameOf(family.id));
    EXPECT_TRUE(
        original.emplace(family.upstream_type, family.experts.size(), family.published.dim).second);
    EXPECT_TRUE(
        diffusers.emplace(family.experts.size(), family.image, family.vae, family.published.dim)
            .second);
    EXPECT_FALSE(family.diffusers_class.empty());
  }
}

TEST(ModelFamilyTest, DefaultsSuitTheExperts) {
  for (const ModelFamily& family : ModelFamilies()) {
    SCOPED_TRACE(NameOf(family.id));
    EXPECT_EQ(family.expert_boundary.has_value(), family.experts.size() == 2);
    EXPECT_EQ(family.sampling.guidance_scale.size(), family.experts.size());
    EXPECT_TRUE(family.accepts_text_only || family.image != ImageRole::kNone);
  }
}

TEST(ModelFamilyTest, PublishedRatiosAreOfItsExpertsAndDefaults) {
  for (const ModelFamily& family : ModelFamilies()) {
    SCOPED_TRACE(NameOf(family.id));
    EXPECT_EQ(family.reuse.retained_shares.size(), family.experts.size());
    for (const auto published : {family.text_ratios, family.image_ratios}) {
      const StepRatios& ratios = published();
      EXPECT_EQ(ratios.steps, family.sampling.steps);
      EXPECT_EQ(ratios.shift, family.sampling.shift);
      EXPECT_EQ(ratios.solver, family.sampling.solver);
      EXPECT_EQ(ratios.guidance_scale, family.sampling.guidance_scale);
      ASSERT_EQ(ratios.experts.size(), family.experts.size());
      size_t steps = 0;
      for (const PhaseRatios& phase : ratios.experts) {
        EXPECT_EQ(phase.conditional.size(), phase.unconditional.size());
        steps += phase.conditional.size() + 1;
      }
      EXPECT_EQ(steps, static_cast<size_t>(ratios.steps));
    }
  }
}

TEST(ModelFamilyTest, OnlyAConditionImageAddsChannels) {
  for (const ModelFamily& family : ModelFamilies()) {
    SCOPED_TRACE(NameOf(family.id));
    EXPECT_EQ(family.ConditionChannels(16, 4), family.image == ImageRole::kCondition ? 20 : 0);
  }
}

}  // namespace
}  // namespace wan
