#include "client/reports/render.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "client/reports/lines.h"
#include "client/reports/report.h"
#include "client/reports/svg.h"
#include "tests/client/reports/synthetic_report.h"

namespace wan::client::reports {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

Document Small() {
  Table table;
  table.columns = {{"Name", "name"}, {"Time (s)", "seconds"}, {"Nothing", "nothing"}};
  table.rows = {{"a|b", Number{1.5, 2}, Cell()}, {"<i>", Cell(), Cell()}};
  table.note = "A note.";
  Facts facts{{{"Peak", "peak_gib", Number{2, 1}, "GiB"}, {"Absent", "absent", Cell(), "s"}}};
  return {"Title", "root", {}, {{"First", "first", {facts, table, List{{"one"}, true}}, {}}}};
}

TEST(DocumentTest, EmptyColumnsGo) {
  Table table = std::get<Table>(Small().sections[0].blocks[1]);
  DropEmptyColumns(table);
  EXPECT_EQ(table.columns.size(), 2u);
  EXPECT_EQ(table.rows[0].size(), 2u);
  EXPECT_EQ(CellText(Cell()), "-");
  EXPECT_EQ(CellText(Number{-0.001, 2}), "0.00");
}

TEST(RenderTest, Text) {
  const std::string text = RenderText(Small());
  EXPECT_THAT(text, HasSubstr("Name  Time (s)  Nothing\n-----------------------\n"
                              "a|b       1.50  -\n<i>          -  -\nA note.\n"));
  EXPECT_THAT(text, HasSubstr("Peak:   2.0 GiB\nAbsent: -\n"));
  Document evil{"\x1b[31mred\xC2\x9B", "x", {}, {}};
  EXPECT_THAT(RenderText(evil), HasSubstr("\n?[31mred?\n"));
}

size_t LongestLine(const std::string& text) {
  size_t longest = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) longest = std::max(longest, Width(line));
  return longest;
}

TEST(RenderTest, NoLineOfATextIsWiderThanAScreen) {
  std::vector<MeasuredRun> runs =
      Twice({{"a_case_whose_name_is_long", "", 1, GpuReport(), {}},
             {"a_case_whose_name_is_long", "one forward a step", 1, GpuReport(), {}}});
  EXPECT_LE(LongestLine(RenderText(BuildReport(runs, {*ParseCeilings(kCeilingsJson, "test")}))),
            kWidestLine);
  // Twelve columns of numbers, whose titles share the blame.
  Table table;
  for (int i = 0; i < 12; ++i) {
    table.columns.push_back({"A long title", "title"});
  }
  table.rows.emplace_back(12, Number{1234.5, 2});
  EXPECT_LE(LongestLine(RenderText(Document{"d", "d", {table}, {}})), kWidestLine);
  EXPECT_THAT(RenderText(Document{"d", "d", {table}, {}}), HasSubstr("1234.50"));
}

TEST(RenderTest, ATextFitsItsTerminal) {
  const std::vector<MeasuredRun> runs = Twice({{"short", "", 1, GpuReport(), {}}});
  EXPECT_LE(LongestLine(RenderText(BuildTables(runs), 80)), 80u);
  Table table{{{"Case", "case"}, {"Verdict", "verdict"}}, {}, ""};
  std::string verdict;
  for (int i = 0; i < 30; ++i) verdict += "words ";
  table.rows = {{"a", verdict}};
  const Document document{"d", "d", {table, Paragraph{verdict}}, {}};
  EXPECT_LE(LongestLine(RenderText(document, 60)), 60u);
  EXPECT_THAT(RenderText(document, 60), HasSubstr("Case  Verdict\n"));
  EXPECT_LE(LongestLine(RenderText(document, 1000)), kWidestLine);
}

TEST(RenderTest, ATableThatDoesNotFitBecomesRecords) {
  Table table{{{"Case", "case"}, {"A number", "number"}, {"Text", "text"}}, {}, "A note."};
  table.rows = {{"a", Number{1.5, 2}, "one two three"}, {"b", Cell(), "x"}};
  EXPECT_EQ(RenderText(Document{"", "d", {table}, {}}, 18),
            "a\n  A number: 1.50\n  Text:     one\n            two\n            three\n"
            "b\n  Text:     x\nA note.\n");
  EXPECT_THAT(RenderText(Document{"", "d", {table}, {}}, 19), HasSubstr("Case       A  Text\n"));
}

TEST(RenderTest, CellsBreakBetweenWordsAndAfterMarks) {
  EXPECT_THAT(CellLines("one two three", 7), ElementsAre("one two", "three"));
  EXPECT_THAT(CellLines("04_14B_Speed_Preview", 8), ElementsAre("04_14B_", "Speed_", "Preview"));
  EXPECT_THAT(CellLines("Mem(GiB)", 5), ElementsAre("Mem", "(GiB)"));
  EXPECT_EQ(LongestPiece("one 04_14B_Speed(s)"), 5u);
  EXPECT_THAT(CellLines("abcdefgh", 3), ElementsAre("abc", "def", "gh"));
  EXPECT_THAT(CellLines("a  b", 4), ElementsAre("a  b")) << "as a file may be named";
  EXPECT_THAT(CellLines("", 3), ElementsAre(""));
}

TEST(RenderTest, TextsOfMarkdownAreWrapped) {
  std::string text = "It costs";
  for (int i = 0; i < 40; ++i) text += " words";
  const std::string markdown =
      RenderMarkdown(Document{"d", "d", {Paragraph{text}, List{{text}}}, {}});
  EXPECT_LE(LongestLine(markdown), kWidestLine);
  EXPECT_THAT(markdown, HasSubstr("\n- It costs words"));
  EXPECT_THAT(markdown, HasSubstr("\n  words"));
  // These would begin a list, were they first in a line.
  EXPECT_EQ(Wrapped("four 12. - five", "", "", 5), "four 12. -\nfive\n");
}

TEST(RenderTest, Markdown) {
  const std::string text = RenderMarkdown(Small());
  EXPECT_THAT(text, HasSubstr("## First\n"));
  EXPECT_THAT(text, HasSubstr("| Name | Time (s) | Nothing |\n| :--- | ---: | :--- |\n"
                              "| a\\|b | 1.50 | - |\n| &lt;i&gt; | - | - |\n"));
}

TEST(RenderTest, Json) {
  const std::string text = RenderJson(Small(), {});
  EXPECT_THAT(text, HasSubstr("\"seconds\": 1.5"));
  EXPECT_THAT(text, HasSubstr("\"peak_gib\": 2.0"));
  EXPECT_THAT(text, Not(HasSubstr("nothing")));
}

TEST(RenderTest, RunsComeBackFromJson) {
  MeasuredRun run{"case", "original", 2, GpuReport(), ResultDifference{false, 0.25, false, 40.5}};
  run.frames = {std::string("\xff\xd8\0", 3), "second"};
  const std::string text = RenderJson(Small(), {run});
  const absl::StatusOr<std::vector<MeasuredRun>> read = ParseRuns(text, "r.json");
  ASSERT_TRUE(read.ok()) << read.status();
  ASSERT_EQ(read->size(), 1u);
  EXPECT_EQ(FullName(read->front()), "case (original, run 2)");
  EXPECT_EQ(read->front().difference->relative, 0.25);
  EXPECT_EQ(read->front().difference->psnr, 40.5);
  EXPECT_EQ(read->front().frames, run.frames);
  EXPECT_EQ(read->front().report.SerializeAsString(), run.report.SerializeAsString());
  EXPECT_THAT(std::string(ParseRuns("{}", "r.json").status().message()),
              HasSubstr("r.json has no runs: it is not a JSON object with a list 'runs'"));
  EXPECT_THAT(std::string(ParseRuns(R"({"runs": [{"name": 1}]})", "r.json").status().message()),
              HasSubstr("run 1 lacks a field"));
  EXPECT_THAT(
      std::string(ParseRuns(R"({"runs": [{"name": "a", "variant": "", "number": 1, "frames": ["*"],
                                       "report": {}}]})",
                            "r.json")
                      .status()
                      .message()),
      HasSubstr("a frame of 'a' is not base64"));
}

TEST(RenderTest, OnlyHtmlShowsFrames) {
  const Document document{"d", "d", {Pictures{"Frames of <a>", {"one", "two"}}}, {}};
  const std::string html = RenderHtml(document);
  EXPECT_THAT(html, HasSubstr("<figcaption>Frames of &lt;a&gt;</figcaption>"));
  EXPECT_THAT(html, HasSubstr("<img src=\"data:image/jpeg;base64,b25l\" alt=\"frame 1 of 2\">"));
  for (const std::string& text :
       {RenderText(document), RenderMarkdown(document), RenderJson(document, {})}) {
    EXPECT_THAT(text, Not(HasSubstr("Frames of")));
  }
}

TEST(DocumentTest, SmallFiguresKeepTheirDigits) {
  EXPECT_EQ(CellText(Measure(516.405, 3)), "516.405");
  EXPECT_EQ(CellText(Measure(3.14159, 2)), "3.14");
  EXPECT_EQ(CellText(Measure(0.0001234, 3)), "0.000123");
  EXPECT_EQ(CellText(Measure(0.03456, 2)), "0.0346");
  EXPECT_EQ(CellText(Measure(0, 2)), "0.00");
  EXPECT_EQ(CellText(PositiveMeasure(0, 2)), "-");
  EXPECT_EQ(CellText(PositiveMeasure(1.5e6, 2, 1e-9)), "0.00150");
}

TEST(RenderTest, HtmlSetsTablesOfManyColumnsSmaller) {
  Table table;
  for (int i = 0; i < 12; ++i) table.columns.push_back({"c", "c"});
  EXPECT_THAT(RenderHtml(Document{"d", "d", {table}, {}}), HasSubstr("class=\"table wide short\""));
  table.columns.resize(4);
  EXPECT_THAT(RenderHtml(Document{"d", "d", {table}, {}}), Not(HasSubstr("class=\"table wide")));
}

TEST(RenderTest, HtmlLoadsNothing) {
  const absl::StatusOr<Ceilings> ceilings = ParseCeilings(kCeilingsJson, "test");
  std::vector<MeasuredRun> runs = {RunOf(GpuReport())};
  runs[0].name = "<script>alert(1)</script>";
  const std::string html = RenderHtml(BuildReport(runs, {*ceilings}));
  EXPECT_THAT(html, Not(HasSubstr("<script")));
  EXPECT_THAT(html, HasSubstr("&lt;script&gt;"));
  for (const char* loads : {"src=", "url(", "@import", "<link", "https://"}) {
    EXPECT_THAT(html, Not(HasSubstr(loads)));
  }
  EXPECT_THAT(html, HasSubstr("prefers-color-scheme:dark"));
  EXPECT_THAT(html, HasSubstr("@media print"));
  for (const char* chart :
       {"Stages over time", "Seconds of each step", "Roofline", "GPU memory at"}) {
    EXPECT_THAT(html, HasSubstr(std::string("aria-label=\"") + chart));
  }
}

TEST(SvgTest, ChartsWithoutDataAreDrawn) {
  for (const auto& data :
       {decltype(Chart::data)(TimelineChart()), decltype(Chart::data)(SequenceChart()),
        decltype(Chart::data)(BarChart()), decltype(Chart::data)(RooflineChart())}) {
    const std::string svg = SvgFile({"Empty", "empty", data});
    EXPECT_THAT(svg, HasSubstr("</svg>"));
    EXPECT_THAT(svg, Not(HasSubstr("nan")));
    EXPECT_THAT(svg, Not(HasSubstr("inf")));
  }
}

// A processor's roof has digits too.
TEST(SvgTest, SmallRatesKeepTheirDigits) {
  RooflineChart chart;
  chart.peak_flops_per_second = 81.3e9;
  chart.bytes_per_second = 15.6e9;
  const std::string svg = SvgFile({"Roofline", "roofline", chart});
  EXPECT_THAT(svg, HasSubstr("0.0813 TFLOP/s"));
  EXPECT_THAT(svg, HasSubstr("0.0156 TB/s"));
}

}  // namespace
}  // namespace wan::client::reports
