#include "demo/evaluate/comparison.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace wan::demo {
namespace {

using Json = nlohmann::ordered_json;
using testing::DoubleNear;
using testing::HasSubstr;
using testing::Not;

Json Clip(const std::string& id, bool shape, bool background = true) {
  return {{"mode", "text"},
          {"id", id},
          {"background", background},
          {"objects", {{{"colour", true}, {"motion", true}, {"shape", shape}}}}};
}

Json Report(const std::vector<bool>& shapes) {
  Json clips = Json::array();
  for (size_t i = 0; i < shapes.size(); ++i) clips.push_back(Clip(std::to_string(i), shapes[i]));
  return {{"settings", {{"scenes_sha256", "aa"}}},
          {"load", {{"videos_per_minute", 60.0}, {"mean_job_seconds", 1.0}}},
          {"clips", clips}};
}

// Agresti and Min, 2005: (c - b) / (n + 2) and its error with half a pair more on each side.
TEST(Comparison, IntervalOfPairedShares) {
  std::vector<double> differences(100, 0.0);
  for (int i = 0; i < 9; ++i) differences[i] = 1;
  differences[50] = differences[51] = differences[52] = -1;
  const Difference difference = PairedShares(differences);
  EXPECT_DOUBLE_EQ(difference.mean, 0.06);
  const double middle = (9.5 - 3.5) / 102;
  const double error = std::sqrt(9.5 + 3.5 - 6.0 * 6.0 / 102) / 102;
  EXPECT_THAT(difference.low, DoubleNear(middle - 1.96 * error, 1e-5));
  EXPECT_THAT(difference.high, DoubleNear(middle + 1.96 * error, 1e-5));
  EXPECT_FALSE(difference.certain());
}

TEST(Comparison, FewEqualScenesAreNoCertainty) {
  const Difference difference = PairedShares({0, 0, 0, 0});
  EXPECT_LT(difference.low, -0.2);
  EXPECT_GT(difference.high, 0.2);
}

TEST(Comparison, IntervalOfPairedFigures) {
  const Difference difference = PairedFigures({1, 2, 3});
  EXPECT_DOUBLE_EQ(difference.mean, 2);
  EXPECT_THAT(difference.low, DoubleNear(2 - 1.96 / std::sqrt(3.0), 1e-4));
  EXPECT_TRUE(difference.certain());
}

TEST(Comparison, MarksWhatIsCertain) {
  const Json good = Report(std::vector<bool>(40, true));
  const Json bad = Report(std::vector<bool>(40, false));
  const absl::StatusOr<std::string> table = CompareReports(good, bad);
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_THAT(*table, HasSubstr("| text, one object: shape | 40 | 100.0 % | 0.0 % | -100.0 (-100.0 "
                                "to -87.3) * | 0 | 40 |"));
  EXPECT_THAT(*table, HasSubstr("| text, one object: colour | 40 | 100.0 % | 100.0 % | +0.0 (-4.7 "
                                "to +4.7) | 0 | 0 |"));
  EXPECT_THAT(*table, HasSubstr("| videos per minute | | 60.00 | 60.00 | x 1.000 | | |"));
  EXPECT_THAT(*table, Not(HasSubstr("do not count")));
}

TEST(Comparison, NamesClipsWhoseBackgroundChanged) {
  const Json before = Report({true, true});
  Json after = before;
  after["clips"][1] = Clip("1", true, /*background=*/false);
  const absl::StatusOr<std::string> table = CompareReports(before, after);
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_THAT(*table, HasSubstr("| text, one object: background | 2 | 100.0 % | 50.0 % |"));
  EXPECT_THAT(*table, HasSubstr("- text, one object: background, worse: 1\n"));
}

TEST(Comparison, PairsByScene) {
  const absl::StatusOr<std::string> table =
      CompareReports(Report({true, true, true}), Report({true, false}));
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_THAT(*table, HasSubstr("shape | 2 | 100.0 % | 50.0 % |"));
  EXPECT_THAT(*table, HasSubstr("1 videos are in one report only"));
}

TEST(Comparison, NamesTheClipsThatChanged) {
  const Json a = Report({true, true, false, true});
  EXPECT_THAT(*CompareReports(a, Report({true, false, true, false})),
              HasSubstr("Clips judged otherwise:\n\n"
                        "- text, one object: shape, better: 2\n"
                        "- text, one object: shape, worse: 1, 3\n"));
  EXPECT_THAT(*CompareReports(a, a), HasSubstr("No clip is judged otherwise."));
}

TEST(Comparison, FirstFramesInDecibels) {
  Json a = Report({true, true}), b = a;
  a["clips"][0]["first_frame_psnr"] = 40.0;
  a["clips"][1]["first_frame_psnr"] = 42.0;
  b["clips"][0]["first_frame_psnr"] = 38.0;
  b["clips"][1]["first_frame_psnr"] = 40.0;
  EXPECT_THAT(*CompareReports(a, b),
              HasSubstr("first frame | 2 | 41.0 dB | 39.0 dB | -2.0 (-2.0 to -2.0) * |"));
}

TEST(Comparison, RefusesWhatCannotBeCompared) {
  Json other = Report({true});
  other["settings"]["scenes_sha256"] = "bb";
  EXPECT_THAT(CompareReports(Report({true}), other).status().message(),
              HasSubstr("different scenes"));
  EXPECT_THAT(CompareReports(Report({true}), Report({})).status().message(),
              HasSubstr("no video in common"));
  EXPECT_THAT(CompareReports(Report({true}), Json::object()).status().message(),
              HasSubstr("no report of demo_evaluate"));
}

}  // namespace
}  // namespace wan::demo
