#include "demo/evaluate/scores.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace wan::demo {
namespace {

using testing::HasSubstr;

const ExpectedObject kRedSquare{"red", "square", "right", "left"};
const ExpectedObject kBlueStar{"blue", "star", "spin", "right"};

SeenObject Seen(const ExpectedObject& like) {
  return {like.colour, like.shape, like.motion, like.side, 0.9, 1};
}

Scene SceneOf(std::vector<ExpectedObject> objects) {
  return {.id = "a", .caption = "a", .background = "black", .objects = std::move(objects)};
}

TEST(Scores, EveryObjectGetsTheOneOfItsColour) {
  SeenObject square = Seen(kRedSquare), star = Seen(kBlueStar);
  // All but the colour speaks for the other one.
  std::swap(square.shape, star.shape);
  std::swap(square.motion, star.motion);
  std::swap(square.side, star.side);
  const SceneScore score = ScoreScene(SceneOf({kRedSquare, kBlueStar}), {"black", {star, square}});
  for (const ObjectScore& object : score.objects) {
    EXPECT_TRUE(object.colour);
    EXPECT_FALSE(object.shape);
    EXPECT_FALSE(object.motion);
  }
  EXPECT_EQ(score.objects[0].seen.colour, "red");
  EXPECT_TRUE(score.count);
  EXPECT_TRUE(score.background);
}

TEST(Scores, WithoutTheColourTheRestDecides) {
  SeenObject square = Seen(kRedSquare), star = Seen(kBlueStar);
  square.colour = star.colour = "green";
  const SceneScore score = ScoreScene(SceneOf({kRedSquare, kBlueStar}), {"grey", {star, square}});
  for (const ObjectScore& object : score.objects) {
    EXPECT_FALSE(object.colour);
    EXPECT_TRUE(object.shape);
    EXPECT_TRUE(object.motion);
  }
  EXPECT_FALSE(score.background);
}

TEST(Scores, OneSeenForTwoExpectedCountsOnce) {
  const SceneScore score =
      ScoreScene(SceneOf({kRedSquare, kBlueStar}), {"black", {Seen(kBlueStar)}});
  EXPECT_FALSE(score.objects[0].colour || score.objects[0].shape || score.objects[0].motion);
  EXPECT_EQ(score.objects[0].seen.colour, "");
  EXPECT_TRUE(score.objects[1].colour && score.objects[1].shape && score.objects[1].motion);
  EXPECT_FALSE(score.count);
}

TEST(Scores, OneExpectedAmongTwoSeenIsFound) {
  const SceneScore score =
      ScoreScene(SceneOf({kRedSquare}), {"black", {Seen(kBlueStar), Seen(kRedSquare)}});
  EXPECT_TRUE(score.objects[0].colour && score.objects[0].shape && score.objects[0].motion);
  EXPECT_FALSE(score.count);
}

TEST(Scores, NothingSeenIsNothingRight) {
  const SceneScore score = ScoreScene(SceneOf({kRedSquare}), {"black", {}});
  ASSERT_EQ(score.objects.size(), 1u);
  EXPECT_FALSE(score.objects[0].colour || score.objects[0].shape || score.objects[0].motion);
}

TEST(Scores, TalliesOneAndTwoObjectsApart) {
  Tallies tallies;
  const Scene one = SceneOf({kRedSquare}), two = SceneOf({kRedSquare, kBlueStar});
  SeenObject wrong = Seen(kRedSquare);
  wrong.shape = "circle";
  AddTo(tallies, one, ScoreScene(one, {"black", {wrong}}));
  AddTo(tallies, two, ScoreScene(two, {"black", {Seen(kRedSquare)}}));

  const nlohmann::ordered_json json = ToJson(tallies);
  EXPECT_EQ(json["one"]["scenes"], 1);
  EXPECT_EQ(json["one"]["shape"]["right"], 0);
  EXPECT_EQ(json["one"]["motion"]["share"], 1.0);
  EXPECT_EQ(json["one"]["confusion"]["shape"]["square"]["circle"], 1);
  EXPECT_EQ(json["two"]["colour"]["of"], 2);
  EXPECT_EQ(json["two"]["colour"]["share"], 0.5);
  EXPECT_EQ(json["two"]["confusion"]["motion"]["spin"]["nothing"], 1);
  EXPECT_EQ(json["two"]["count"]["right"], 0);
  EXPECT_THAT(ToText(tallies), HasSubstr("two            1     50.0     50.0     50.0"));
}

TEST(Scores, SumsUpOutlinesOfAllFrames) {
  Tallies tallies;
  const Scene scene = SceneOf({kRedSquare});
  SeenObject square = Seen(kRedSquare);
  square.outline = {1.0, 0.96, 0.95, 0.94, 0.93, 0.92, 0.91, 0.9, 0.8, 0.5};
  AddTo(tallies, scene, ScoreScene(scene, {"black", {square}}));
  const nlohmann::ordered_json outline = ToJson(tallies)["one"]["outline"];
  EXPECT_EQ(outline["frames"], 10);
  EXPECT_EQ(outline["median"], 0.93);
  EXPECT_EQ(outline["tenth"], 0.8);
  EXPECT_EQ(outline["first"], 1.0);
  EXPECT_EQ(outline["last"], 0.5);
  EXPECT_THAT(ToText(tallies), HasSubstr("outlines: median 0.930, a tenth below 0.800"));
}

TEST(Scores, CountsGroupsApart) {
  GroupTallies groups;
  Scene capitals = SceneOf({kRedSquare}), wide = SceneOf({kRedSquare});
  capitals.groups = {"capitals"};
  wide.groups = {"capitals", "384x256"};
  AddTo(groups, capitals, ScoreScene(capitals, {"black", {Seen(kRedSquare)}}));
  AddTo(groups, wide, ScoreScene(wide, {"black", {}}));
  const nlohmann::ordered_json json = ToJson(groups);
  EXPECT_EQ(json["capitals"]["one"]["colour"]["share"], 0.5);
  EXPECT_EQ(json["384x256"]["one"]["colour"]["share"], 0.0);
  EXPECT_FALSE(json["capitals"]["one"].contains("confusion"));
}

TEST(Scores, ANumberOfObjectsWithoutScenesIsLeftOut) {
  Tallies tallies;
  const Scene one = SceneOf({kRedSquare});
  AddTo(tallies, one, ScoreScene(one, {"black", {}}));
  EXPECT_FALSE(ToJson(tallies).contains("two"));
}

}  // namespace
}  // namespace wan::demo
