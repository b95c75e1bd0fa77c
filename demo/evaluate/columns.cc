#include "demo/evaluate/columns.h"

#include <array>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "demo/evaluate/psnr.h"
#include "demo/evaluate/run_plan.h"
#include "demo/evaluate/scores.h"

namespace wan::demo {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<const char*, 3> kShares = {"colour", "motion", "shape"};

// What a column says about the videos of one mode.
struct Figures {
  int videos = 0;
  std::array<Share, kShares.size()> shares;
  double outlines = 0;  // sum of the medians of `outlined` objects
  int outlined = 0;
  Decibels first_frame;
  Decibels psnr;
};

// May throw Json::exception, as FiguresOf may.
void AddClip(const Json& clip, Figures& figures) {
  ++figures.videos;
  for (const Json& object : clip.at("objects")) {
    for (size_t i = 0; i < kShares.size(); ++i) {
      figures.shares[i].Add(object.at(kShares[i]).get<bool>());
    }
    const Json& seen = object.at("seen");
    if (!seen.contains("outline_median")) continue;
    figures.outlines += seen.at("outline_median").get<double>();
    ++figures.outlined;
  }
  if (clip.contains("first_frame_psnr")) {
    figures.first_frame.Add(clip.at("first_frame_psnr").get<double>());
  }
  if (clip.contains("psnr")) figures.psnr.Add(clip.at("psnr").get<double>());
}

Figures FiguresOf(const Json& report, const char* mode) {
  Figures figures;
  for (const Json& clip : report.at("clips")) {
    if (clip.at("mode").get<std::string>() == mode) AddClip(clip, figures);
  }
  return figures;
}

std::string ShareCell(const Share& share) {
  if (share.of == 0) return "";
  return absl::StrFormat("%.1f %% (%d of %d)", 100 * share.value(), share.right, share.of);
}

std::string LevelCell(const Decibels& level) {
  if (level.clips == 0) return "";
  return absl::StrFormat("%.1f dB, worst %.1f", level.mean(), level.worst);
}

std::string OutlineCell(const Figures& figures) {
  return figures.outlined == 0 ? "" : absl::StrFormat("%.3f", figures.outlines / figures.outlined);
}

// Returns "" if all cells are empty.
template <typename CellOf>
std::string Row(const std::string& title, const std::vector<Figures>& all, const CellOf& cell_of) {
  std::string cells;
  bool filled = false;
  for (const Figures& figures : all) {
    const std::string cell = cell_of(figures);
    filled = filled || !cell.empty();
    absl::StrAppend(&cells, " ", cell, " |");
  }
  return filled ? absl::StrCat("| ", title, " |", cells, "\n") : "";
}

std::string ModeRows(const char* mode, const std::vector<Column>& columns) {
  std::vector<Figures> all;
  for (const Column& column : columns) all.push_back(FiguresOf(column.report, mode));
  const auto title = [&](const char* measure) { return absl::StrCat(mode, ": ", measure); };
  std::string text = Row(title("videos"), all, [](const Figures& figures) {
    return figures.videos == 0 ? "" : absl::StrCat(figures.videos);
  });
  for (size_t i = 0; i < kShares.size(); ++i) {
    text += Row(title(kShares[i]), all,
                [i](const Figures& figures) { return ShareCell(figures.shares[i]); });
  }
  text += Row(title("outline"), all, OutlineCell);
  text += Row(title("first frame"), all,
              [](const Figures& figures) { return LevelCell(figures.first_frame); });
  text += Row(absl::StrCat(title("PSNR to "), columns.front().title), all,
              [](const Figures& figures) { return LevelCell(figures.psnr); });
  return text;
}

}  // namespace

absl::StatusOr<std::string> ColumnsTable(const std::vector<Column>& columns) {
  std::string head = "| measure |";
  std::string line = "| --- |";
  try {
    for (const Column& column : columns) {
      if (column.report.at("settings").at("scenes_sha256") !=
          columns.front().report.at("settings").at("scenes_sha256")) {
        return absl::InvalidArgumentError(
            absl::StrCat(column.title, " is of other scenes than ", columns.front().title));
      }
      absl::StrAppend(&head, " ", column.title, " |");
      line += " --- |";
    }
    std::string text = absl::StrCat(head, "\n", line, "\n");
    for (const VideoMode mode : {VideoMode::kTextToVideo, VideoMode::kImageToVideo}) {
      text += ModeRows(NameOf(mode), columns);
    }
    return text;
  } catch (const Json::exception& error) {
    return absl::InvalidArgumentError(
        absl::StrCat("a run's report.json is no report of demo_evaluate: ", error.what()));
  }
}

}  // namespace wan::demo
