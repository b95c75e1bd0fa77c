#include "client/compare/comparison_report.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace wan::client {
namespace {

using reports::Cell;
using reports::Number;

struct Metric {
  const char* title;
  const char* unit;  // empty: the figure has no unit
  const char* key;   // the figure's name in tables, and the name of its plot's file
  const char* json_key;
  double FrameMetrics::*value;
  int digits;
  // The plot's axis begins at a multiple of this step; large values use a power of ten times it.
  double step;
};
constexpr std::array<Metric, 3> kMetrics = {
    {{"PSNR of RGB (dB)", "dB", "psnr_db", "psnr", &FrameMetrics::psnr, 2, 1},
     {"SSIM of luma", "", "ssim", "ssim", &FrameMetrics::ssim, 4, 0.001},
     {"MS-SSIM of luma", "", "ms_ssim", "msSsim", &FrameMetrics::ms_ssim, 4, 0.001}}};

Cell Figure(double value, const Metric& metric) { return Number{value, metric.digits}; }

std::string VideoText(const ComparedVideo& video) {
  if (video.artifact.empty()) return video.name;
  return absl::StrCat(video.name, ", its ", video.artifact == "mkv" ? "lossless " : "", ".",
                      video.artifact);
}

bool IsMp4(const ComparedVideo& video) {
  return video.artifact == "mp4" || (video.artifact.empty() && absl::EndsWith(video.name, ".mp4"));
}

reports::Facts FactsOf(const ComparisonReport& report) {
  const VideoShape& shape = report.videos.shape;
  return {{{"A", "a", VideoText(report.a), ""},
           {"B", "b", VideoText(report.b), ""},
           {"Both", "shape",
            absl::StrFormat("%dx%d, %d frames, %.4g frames a second", shape.width, shape.height,
                            shape.frames, shape.fps),
            ""}}};
}

std::string NoteOf(const VideoComparison& comparison) {
  std::string note = "Frames are counted from 0.";
  const int identical = comparison.identical();
  if (identical > 0) {
    absl::StrAppendFormat(&note, " %d of %d frames have equal pixels, for which PSNR is %g dB.",
                          identical, comparison.shape.frames, kEqualPsnr);
  }
  const int scales = MsSsimScales(comparison.shape.width, comparison.shape.height);
  if (scales < kMsSsimScales) {
    absl::StrAppendFormat(&note,
                          " MS-SSIM has %d of its %d scales, because a side is below %d pixels.",
                          scales, kMsSsimScales, kMsSsimSide);
  }
  return note;
}

reports::Table SummaryTable(const VideoComparison& comparison) {
  reports::Table table{
      {{"Metric", "metric"}, {"Mean", "mean"}, {"Worst", "worst"}, {"In frame", "worst_frame"}},
      {},
      NoteOf(comparison)};
  for (const Metric& metric : kMetrics) {
    const MetricSummary summary = Summarize(comparison, metric.value);
    table.rows.push_back({std::string(metric.title), Figure(summary.mean, metric),
                          Figure(summary.worst, metric),
                          Number{static_cast<double>(summary.worst_frame), 0}});
  }
  return table;
}

reports::Table FrameTable(const VideoComparison& comparison) {
  reports::Table table{{{"Frame", "frame"}}, {}, ""};
  for (const Metric& metric : kMetrics) table.columns.push_back({metric.title, metric.key});
  for (size_t i = 0; i < comparison.frames.size(); ++i) {
    std::vector<Cell> row = {Number{static_cast<double>(i), 0}};
    for (const Metric& metric : kMetrics) {
      row.push_back(Figure(comparison.frames[i].*metric.value, metric));
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

reports::Chart ChartOf(const VideoComparison& comparison, const Metric& metric) {
  reports::SequenceChart chart;
  chart.item = "frame";
  chart.unit = metric.unit;
  chart.digits = metric.digits;
  chart.lines = true;
  reports::SequenceChart::Run run{metric.title, {}};
  for (const FrameMetrics& frame : comparison.frames) run.values.push_back(frame.*metric.value);
  const MetricSummary summary = Summarize(comparison, metric.value);
  const double span = *std::max_element(run.values.begin(), run.values.end()) - summary.worst;
  const double step =
      span > 0 ? std::max(metric.step, std::pow(10, std::floor(std::log10(span)))) : metric.step;
  chart.bottom = std::floor(summary.worst / step) * step;
  chart.runs.push_back(std::move(run));
  chart.marks.push_back(
      {summary.worst_frame, absl::StrFormat("worst: %.*f in frame %d", metric.digits, summary.worst,
                                            summary.worst_frame)});
  return {absl::StrCat(metric.title, " of each frame"), metric.key, std::move(chart)};
}

// Whether a line of the receipts' differences is about an input that decides a video's content.
// Videos of different content differ at any quality.
bool ChangesContent(const std::string& line) {
  for (const char* const start :
       {"request: model:", "request: prompt:", "request: seed:", "the image"}) {
    if (absl::StartsWith(line, start)) return true;
  }
  return false;
}

void AddDifferences(const ComparisonReport& report, std::vector<reports::Block>& blocks) {
  const auto say = [&](std::string text) {
    blocks.emplace_back(reports::Paragraph{std::move(text)});
  };
  if (!report.differences) {
    say("Which settings differ is not known, because a file does not say how it was made; name "
        "both jobs to see it.");
    return;
  }
  const std::vector<std::string>& lines = *report.differences;
  if (lines.empty()) {
    say("The jobs' receipts do not differ: model, request and server were the same.");
    return;
  }
  say(lines.size() == 1 ? "The jobs differ in one thing:"
                        : absl::StrCat("The jobs differ in ", lines.size(),
                                       " things, so the figures do not show what one of them "
                                       "does:"));
  blocks.emplace_back(reports::List{lines, false});
  if (std::any_of(lines.begin(), lines.end(), ChangesContent)) {
    say("Another model, prompt, image or seed makes another video: low figures then say that the "
        "videos show other things, not that one of them is worse.");
  }
}

}  // namespace

reports::Document ComparisonDocument(const ComparisonReport& report) {
  reports::Document document{"Two videos compared", "comparison", {}, {}};
  std::vector<reports::Block>& blocks = document.blocks;
  blocks.emplace_back(FactsOf(report));
  blocks.emplace_back(SummaryTable(report.videos));
  if (IsMp4(report.a) || IsMp4(report.b)) {
    blocks.emplace_back(reports::Paragraph{
        "An .mp4 is compressed, and the figures contain what that took away. Jobs made with "
        "'submit --artifact mkv' or 'generate --output FILE.mkv' are compared without it."});
  }
  AddDifferences(report, blocks);
  if (!report.side_by_side.empty()) {
    blocks.emplace_back(reports::Paragraph{absl::StrCat(
        report.side_by_side, " shows A and B",
        report.gain > 0 ? absl::StrCat(", and their difference ", report.gain, " times amplified.")
                        : "; there is no difference to show.")});
  }
  if (report.videos.identical() < report.videos.shape.frames) {
    for (const Metric& metric : kMetrics) blocks.emplace_back(ChartOf(report.videos, metric));
  }
  document.sections.push_back({"Frames", "frames", {FrameTable(report.videos)}, {}});
  return document;
}

std::string ComparisonJson(const ComparisonReport& report) {
  using Json = nlohmann::ordered_json;
  const VideoShape& shape = report.videos.shape;
  Json json;
  for (const auto& [key, video] : {std::pair("a", &report.a), std::pair("b", &report.b)}) {
    json[key]["name"] = video->name;
    if (!video->artifact.empty()) json[key]["artifact"] = video->artifact;
  }
  json["width"] = shape.width;
  json["height"] = shape.height;
  json["frames"] = shape.frames;
  json["fps"] = shape.fps;
  json["identicalFrames"] = report.videos.identical();
  json["msSsimScales"] = MsSsimScales(shape.width, shape.height);
  for (const Metric& metric : kMetrics) {
    const MetricSummary summary = Summarize(report.videos, metric.value);
    json[metric.json_key] = {
        {"mean", summary.mean}, {"worst", summary.worst}, {"worstFrame", summary.worst_frame}};
  }
  if (report.differences) json["differences"] = *report.differences;
  if (!report.side_by_side.empty()) {
    json["sideBySide"] = {{"file", report.side_by_side}, {"gain", report.gain}};
  }
  json["perFrame"] = Json::array();
  for (const FrameMetrics& frame : report.videos.frames) {
    Json entry;
    for (const Metric& metric : kMetrics) entry[metric.json_key] = frame.*metric.value;
    json["perFrame"].push_back(std::move(entry));
  }
  // Replace invalid UTF-8, which paths may have.
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string ComparisonCsv(const VideoComparison& comparison) {
  std::string csv = "frame";
  for (const Metric& metric : kMetrics) absl::StrAppend(&csv, ",", metric.key);
  csv += "\n";
  for (size_t i = 0; i < comparison.frames.size(); ++i) {
    absl::StrAppend(&csv, i);
    for (const Metric& metric : kMetrics) {
      absl::StrAppendFormat(&csv, ",%.6f", comparison.frames[i].*metric.value);
    }
    csv += "\n";
  }
  return csv;
}

}  // namespace wan::client
