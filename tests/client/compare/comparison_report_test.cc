#include "client/compare/comparison_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "client/reports/render.h"
#include "client/reports/svg.h"

namespace wan::client {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

ComparisonReport Example() {
  ComparisonReport report;
  report.a = {"jobs/1", "mkv"};
  report.b = {"jobs/2", "mkv"};
  report.videos.shape = {1280, 704, 3, 24};
  report.videos.frames = {
      {41.25, 0.9812, 0.9934, false}, {38.5, 0.9731, 0.9902, false}, {100, 1, 1, true}};
  report.differences.emplace();
  return report;
}

std::string Text(const ComparisonReport& report) {
  return reports::RenderText(ComparisonDocument(report));
}

TEST(ComparisonReportTest, SaysWhatWasComparedAndHowNearItIs) {
  EXPECT_THAT(Text(Example()), AllOf(HasSubstr("A:    jobs/1, its lossless .mkv\n"),
                                     HasSubstr("Both: 1280x704, 3 frames, 24 frames a second\n"),
                                     HasSubstr("Metric              Mean   Worst  In frame\n"),
                                     HasSubstr("PSNR of RGB (dB)   59.92   38.50         1\n"),
                                     HasSubstr("SSIM of luma      0.9848  0.9731         1\n"),
                                     HasSubstr("MS-SSIM of luma   0.9945  0.9902         1\n"),
                                     HasSubstr("1 of 3 frames have equal pixels"),
                                     HasSubstr("receipts do not differ"), Not(HasSubstr("scales")),
                                     Not(HasSubstr("compressed"))));
}

TEST(ComparisonReportTest, OneDifferenceIsMeantSeveralMislead) {
  ComparisonReport report = Example();
  report.differences = {"request: steps: 20 in A, 10 in B"};
  EXPECT_THAT(Text(report), AllOf(HasSubstr("The jobs differ in one thing:\n\n- request: steps: 20 "
                                            "in A, 10 in B\n"),
                                  Not(HasSubstr("other things"))));
  report.differences->emplace_back("request: seed: 1 in A, 2 in B");
  EXPECT_THAT(Text(report),
              AllOf(HasSubstr("The jobs differ in 2 things, so the figures do not show"),
                    HasSubstr("seed makes another video")));
  report.differences.reset();
  EXPECT_THAT(Text(report), HasSubstr("Which settings differ is not known"));
}

TEST(ComparisonReportTest, WhatWeakensTheFiguresIsSaid) {
  ComparisonReport report = Example();
  report.b.artifact = "mp4";
  report.videos.shape.height = 64;
  report.side_by_side = "ab.mp4";
  report.gain = 16;
  EXPECT_THAT(Text(report),
              AllOf(HasSubstr("B:    jobs/2, its .mp4\n"), HasSubstr("An .mp4 is compressed"),
                    HasSubstr("MS-SSIM has 3 of its 5 scales"),
                    HasSubstr("ab.mp4 shows A and B, and their difference 16 times amplified.")));
}

TEST(ComparisonReportTest, AFileIsKnownByItsEnding) {
  ComparisonReport report = Example();
  report.a = {"a.mkv", ""};
  report.b = {"b.mkv", ""};
  EXPECT_THAT(Text(report), AllOf(HasSubstr("A:    a.mkv\n"), Not(HasSubstr("compressed"))));
  report.b.name = "b.mp4";
  EXPECT_THAT(Text(report), HasSubstr("An .mp4 is compressed"));
}

TEST(ComparisonReportTest, EveryMetricIsDrawnFromNearItsWorstFrame) {
  const reports::Document document = ComparisonDocument(Example());
  const std::vector<const reports::Chart*> charts = reports::ChartsOf(document);
  ASSERT_EQ(charts.size(), 3u);
  EXPECT_THAT((std::vector{charts[0]->key, charts[1]->key, charts[2]->key}),
              ElementsAre("psnr_db", "ssim", "ms_ssim"));
  const std::string svg = reports::SvgElement(*charts[1]);
  EXPECT_THAT(svg, AllOf(HasSubstr(">worst: 0.9731 in frame 1<"), HasSubstr(">frame<"),
                         HasSubstr("frame 2: 1.0000<"), HasSubstr(">0.97<"),
                         Not(HasSubstr("<rect")), HasSubstr("class=\"line s0\"")));
  ComparisonReport equal = Example();
  for (FrameMetrics& frame : equal.videos.frames) frame = {100, 1, 1, true};
  EXPECT_THAT(reports::ChartsOf(ComparisonDocument(equal)), IsEmpty());
}

TEST(ComparisonReportTest, JsonHasEveryDigitAndCsvALineForEachFrame) {
  ComparisonReport report = Example();
  report.differences = {"request: steps: 20 in A, 10 in B"};
  const std::string text = ComparisonJson(report);
  EXPECT_THAT(text, Not(HasSubstr("\n")));
  const nlohmann::json json = nlohmann::json::parse(text);
  EXPECT_EQ(json["a"]["name"], "jobs/1");
  EXPECT_EQ(json["a"]["artifact"], "mkv");
  EXPECT_EQ(json["frames"], 3);
  EXPECT_EQ(json["identicalFrames"], 1);
  EXPECT_EQ(json["msSsimScales"], 5);
  EXPECT_EQ(json["psnr"]["mean"], (41.25 + 38.5 + 100) / 3);
  EXPECT_EQ(json["msSsim"]["worst"], 0.9902);
  EXPECT_EQ(json["msSsim"]["worstFrame"], 1);
  EXPECT_EQ(json["perFrame"][0]["ssim"], 0.9812);
  EXPECT_EQ(json["differences"][0], "request: steps: 20 in A, 10 in B");
  EXPECT_FALSE(json.contains("sideBySide"));
  EXPECT_EQ(ComparisonCsv(report.videos),
            "frame,psnr_db,ssim,ms_ssim\n"
            "0,41.250000,0.981200,0.993400\n"
            "1,38.500000,0.973100,0.990200\n"
            "2,100.000000,1.000000,1.000000\n");
}

}  // namespace
}  // namespace wan::client
