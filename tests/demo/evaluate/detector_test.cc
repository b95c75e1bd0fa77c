#include "demo/evaluate/detector.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "demo/evaluate/shape_matcher.h"
#include "demo/evaluate/vocabulary.h"
#include "tests/demo/evaluate/scene_painter.h"

namespace wan::demo {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

Sight Look(const PaintedScene& scene) {
  const std::vector<uint8_t> clip = Paint(scene);
  absl::StatusOr<Sight> sight = Detect(ViewOf(clip));
  EXPECT_TRUE(sight.ok()) << sight.status();
  return *sight;
}

auto Shows(const PaintedObject& object) {
  return AllOf(Field("colour", &SeenObject::colour, object.colour),
               Field("shape", &SeenObject::shape, object.shape),
               Field("motion", &SeenObject::motion, object.motion));
}

TEST(Detector, KnowsTheShapesOfTheVocabulary) {
  std::vector<std::string> names;
  for (int i = 0; i < kShapes; ++i) names.emplace_back(ShapeMatcher::Name(i));
  std::vector<std::string> expected = TheVocabulary().shapes;
  EXPECT_THAT(names, testing::UnorderedElementsAreArray(expected));
}

// Every shape with every motion; colours and backgrounds take turns.
TEST(Detector, ReadsOneObject) {
  const Vocabulary& vocabulary = TheVocabulary();
  size_t turn = 0;
  for (const std::string& shape : vocabulary.shapes) {
    for (const std::string& motion : vocabulary.motions) {
      if (shape == "circle" && motion == "spin") continue;
      PaintedScene scene{.background = vocabulary.backgrounds[turn % 6].name};
      scene.objects = {{.colour = vocabulary.colours[turn % 10].name,
                        .shape = shape,
                        .motion = motion,
                        .x = turn % 2 == 0 ? 118.0 : 138.0}};
      ++turn;
      SCOPED_TRACE(absl::StrCat(scene.objects[0].colour, " ", shape, " ", motion, " over ",
                                scene.background));
      const Sight sight = Look(scene);
      EXPECT_EQ(sight.background, scene.background);
      EXPECT_THAT(sight.objects, ElementsAre(Shows(scene.objects[0])));
      if (motion == "spin" || motion == "grow") {
        EXPECT_THAT(sight.objects, ElementsAre(Field(&SeenObject::side,
                                                     scene.objects[0].x < 128 ? "left" : "right")));
      }
    }
  }
}

TEST(Detector, TellsEveryColourFromEveryBackground) {
  int turn = 0;
  for (const NamedColour& background : TheVocabulary().backgrounds) {
    for (const NamedColour& colour : TheVocabulary().colours) {
      // Nobody sees an object over its own colour. Of the backgrounds that are an object's colour
      // or a shade of it, a third of the colours will do.
      if (Distance(background.rgb, colour.rgb) < 80) continue;
      const auto place = &background - TheVocabulary().backgrounds.data();
      if (place >= 7 && turn++ % 3 != 0) continue;
      const Sight sight =
          Look({.background = background.name, .objects = {{.colour = colour.name}}});
      EXPECT_EQ(sight.background, background.name);
      EXPECT_THAT(sight.objects, ElementsAre(Field(&SeenObject::colour, colour.name)))
          << "over " << background.name;
    }
  }
}

TEST(Detector, TellsTwoObjectsApart) {
  const PaintedObject star{
      .colour = "yellow", .shape = "star", .motion = "spin", .x = 64, .radius = 40};
  const PaintedObject heart{
      .colour = "pink", .shape = "heart", .motion = "left", .x = 192, .radius = 35, .reach = 25};
  const Sight sight = Look({.background = "grey", .objects = {star, heart}});
  EXPECT_THAT(sight.objects,
              UnorderedElementsAre(AllOf(Shows(star), Field(&SeenObject::side, "left")),
                                   AllOf(Shows(heart), Field(&SeenObject::side, "right"))));
}

TEST(Detector, TellsTwoObjectsOfOneColourApart) {
  const PaintedObject left{.shape = "cross", .motion = "up", .x = 64, .radius = 40};
  const PaintedObject right{.shape = "circle", .motion = "bounce", .x = 192, .radius = 40};
  const Sight sight = Look({.objects = {left, right}});
  EXPECT_THAT(sight.objects, UnorderedElementsAre(Shows(left), Shows(right)));
}

// The one behind is cut by the other in some frames.
TEST(Detector, LooksAtWholeObjectsForTheirShape) {
  const PaintedObject square{.shape = "square", .motion = "grow", .x = 70, .radius = 46};
  const PaintedObject triangle{.colour = "white", .shape = "triangle", .motion = "up", .x = 165};
  const Sight sight = Look({.background = "dark green", .objects = {square, triangle}});
  EXPECT_THAT(sight.objects, UnorderedElementsAre(Shows(square), Shows(triangle)));
}

TEST(Detector, ReadsObjectsThatLeaveTheFrame) {
  const PaintedObject object{.shape = "triangle", .motion = "right", .x = 150, .reach = 100};
  EXPECT_THAT(Look({.objects = {object}}).objects, ElementsAre(Shows(object)));
}

TEST(Detector, ReadsBlurredAndNoisyClips) {
  const PaintedObject star{.colour = "orange", .shape = "star", .motion = "orbit"};
  const PaintedScene scene{.background = "dark blue", .objects = {star}, .blur = 6, .noise = 30};
  EXPECT_THAT(Look(scene).objects, ElementsAre(Shows(star)));
}

// The rim of orange over black is brown.
TEST(Detector, TakesNoRimForAnObject) {
  const PaintedObject cross{.colour = "orange", .shape = "cross", .motion = "bounce", .radius = 60};
  EXPECT_THAT(Look({.objects = {cross}, .blur = 40}).objects,
              ElementsAre(Field(&SeenObject::colour, "orange")));
}

// Models leave a halo around what moves: here the background has its own colour, which is also a
// colour of objects, near the objects only.
TEST(Detector, TakesNoShadeOfTheBackgroundForAnObject) {
  const PaintedObject green{
      .colour = "green", .shape = "cross", .x = 64, .radius = 35, .reach = 20};
  const PaintedObject red{.colour = "red", .shape = "star", .x = 192, .radius = 35, .reach = 20};
  EXPECT_THAT(Look({.background = "orange", .objects = {green, red}, .vignette = 12}).objects,
              UnorderedElementsAre(Shows(green), Shows(red)));
  EXPECT_THAT(Look({.background = "white", .objects = {red}, .vignette = 15}).objects,
              ElementsAre(Shows(red)));
}

TEST(Detector, SeesThatNothingMoves) {
  const PaintedObject square{.motion = "still"};
  EXPECT_THAT(Look({.objects = {square}}).objects, ElementsAre(Shows(square)));
}

TEST(Detector, KnowsTheOutlinesOfPerfectClips) {
  size_t turn = 0;
  for (const std::string& shape : TheVocabulary().shapes) {
    for (const char* motion : {"right", "grow", "spin"}) {
      const PaintedObject object{
          .shape = shape, .motion = motion, .radius = 30 + 6.0 * double(turn++ % 4)};
      const Sight sight = Look({.objects = {object}});
      ASSERT_EQ(sight.objects.size(), 1U);
      EXPECT_EQ(sight.objects[0].outline.size(), 33U);
      for (const double overlap : sight.objects[0].outline) {
        EXPECT_GT(overlap, 0.96) << shape << " " << motion << ", radius " << object.radius;
      }
    }
  }
}

// The shape is still named rightly, so the outline is the stricter measure.
TEST(Detector, SeesDamagedOutlines) {
  for (const std::string& shape : TheVocabulary().shapes) {
    const PaintedObject object{.shape = shape, .motion = "right", .radius = 48, .lumps = 0.12};
    const Sight sight = Look({.objects = {object}});
    ASSERT_EQ(sight.objects.size(), 1U);
    ASSERT_EQ(sight.objects[0].outline.size(), 33U);
    EXPECT_GT(sight.objects[0].outline.front(), 0.96) << shape;
    EXPECT_LT(sight.objects[0].outline.back(), 0.94) << shape;
  }
}

TEST(Detector, KnowsTheOutlinesOfTwoObjects) {
  const PaintedObject star{
      .colour = "yellow", .shape = "star", .motion = "spin", .x = 64, .radius = 40};
  const PaintedObject heart{
      .colour = "pink", .shape = "heart", .motion = "left", .x = 192, .radius = 35, .reach = 25};
  for (const SeenObject& object : Look({.background = "grey", .objects = {star, heart}}).objects) {
    for (const double overlap : object.outline) EXPECT_GT(overlap, 0.95) << object.shape;
  }
}

TEST(Detector, SeesNothingInAnEmptyClip) {
  const Sight sight = Look({.background = "beige"});
  EXPECT_EQ(sight.background, "beige");
  EXPECT_THAT(sight.objects, IsEmpty());
}

TEST(Detector, RefusesClipsOfTheWrongSize) {
  const std::vector<uint8_t> bytes(33 * 64 * 64 * 3);
  EXPECT_THAT(Detect({bytes, 32, 64, 64}).status().message(),
              HasSubstr("has 393216 bytes, not 405504"));
  EXPECT_THAT(Detect({bytes, 33, 16, 256}).status().message(), HasSubstr("33 of 256x16"));
  EXPECT_THAT(Detect({{}, 0, 64, 64}).status().message(), HasSubstr("0 of 64x64"));
}

TEST(Detector, TakesOneFrame) {
  const std::vector<uint8_t> clip = Paint({.objects = {{.shape = "heart"}}});
  const absl::StatusOr<Sight> sight =
      Detect({std::span(clip).first(clip.size() / kPaintedFrames), 1, kPaintedSize, kPaintedSize});
  ASSERT_TRUE(sight.ok()) << sight.status();
  EXPECT_THAT(sight->objects, ElementsAre(AllOf(Field(&SeenObject::shape, "heart"),
                                                Field(&SeenObject::motion, "still"))));
}

}  // namespace
}  // namespace wan::demo
