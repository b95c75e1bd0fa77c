#include "demo/evaluate/columns.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace wan::demo {
namespace {

using Json = nlohmann::ordered_json;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

Json Object(bool shape, double outline) {
  return {{"colour", true},
          {"motion", true},
          {"shape", shape},
          {"seen", {{"shape", "star"}, {"outline_median", outline}}}};
}

Json Clip(const char* mode, const std::vector<Json>& objects) {
  return {{"mode", mode}, {"id", "a"}, {"objects", objects}};
}

Json Report(const std::vector<Json>& clips, const char* scenes = "aa") {
  return {{"settings", {{"scenes_sha256", scenes}}}, {"clips", clips}};
}

TEST(Columns, HaveARowForEachMeasureOfEachMode) {
  Json exact_image = Clip("image", {Object(true, 0.98)});
  exact_image["first_frame_psnr"] = 44.0;
  const Json exact = Report({Clip("text", {Object(true, 0.97), Object(true, 0.99)}), exact_image});
  Json high = exact;
  high["clips"][0]["objects"][1]["shape"] = false;
  high["clips"][0]["psnr"] = 36.25;
  high["clips"][1]["psnr"] = 41.0;
  high["clips"][1]["first_frame_psnr"] = 43.5;

  const absl::StatusOr<std::string> table = ColumnsTable({{"exact", exact}, {"high", high}});
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ(*table,
            "| measure | exact | high |\n"
            "| --- | --- | --- |\n"
            "| text: videos | 1 | 1 |\n"
            "| text: colour | 100.0 % (2 of 2) | 100.0 % (2 of 2) |\n"
            "| text: motion | 100.0 % (2 of 2) | 100.0 % (2 of 2) |\n"
            "| text: shape | 100.0 % (2 of 2) | 50.0 % (1 of 2) |\n"
            "| text: outline | 0.980 | 0.980 |\n"
            "| text: PSNR to exact |  | 36.2 dB, worst 36.2 |\n"
            "| image: videos | 1 | 1 |\n"
            "| image: colour | 100.0 % (1 of 1) | 100.0 % (1 of 1) |\n"
            "| image: motion | 100.0 % (1 of 1) | 100.0 % (1 of 1) |\n"
            "| image: shape | 100.0 % (1 of 1) | 100.0 % (1 of 1) |\n"
            "| image: outline | 0.980 | 0.980 |\n"
            "| image: first frame | 44.0 dB, worst 44.0 | 43.5 dB, worst 43.5 |\n"
            "| image: PSNR to exact |  | 41.0 dB, worst 41.0 |\n");
}

TEST(Columns, LeaveOutWhatNoRunHas) {
  const Json report = Report({Clip("text", {Object(true, 0.97)})});
  const absl::StatusOr<std::string> table = ColumnsTable({{"a", report}, {"b", report}});
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_THAT(*table, Not(HasSubstr("image:")));
  EXPECT_THAT(*table, Not(HasSubstr("first frame")));
  EXPECT_THAT(*table, Not(HasSubstr("PSNR")));
}

TEST(Columns, RefuseOtherScenesAndWhatIsNoReport) {
  const Json report = Report({Clip("text", {Object(true, 0.97)})});
  EXPECT_EQ(std::string(ColumnsTable({{"a", report}, {"b", Report({}, "bb")}}).status().message()),
            "b is of other scenes than a");
  const Json broken = Report({{{"mode", "text"}}});
  EXPECT_THAT(std::string(ColumnsTable({{"a", report}, {"b", broken}}).status().message()),
              StartsWith("a run's report.json is no report of demo_evaluate"));
}

}  // namespace
}  // namespace wan::demo
