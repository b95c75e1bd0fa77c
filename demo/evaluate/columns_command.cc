#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "client/compare/frame_metrics.h"
#include "demo/evaluate/columns.h"
#include "demo/evaluate/commands.h"
#include "demo/evaluate/report.h"
#include "demo/evaluate/run_folder.h"
#include "demo/evaluate/run_plan.h"
#include "engine/media/video_reader.h"

namespace wan::demo {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

absl::StatusOr<double> PsnrOfVideos(const fs::path& a, const fs::path& b) {
  const absl::StatusOr<VideoClip> first = ReadVideo(a.string());
  if (!first.ok()) return first.status();
  const absl::StatusOr<VideoClip> second = ReadVideo(b.string());
  if (!second.ok()) return second.status();
  if (first->rgb.size() != second->rgb.size() || first->width != second->width) {
    return absl::InvalidArgumentError(
        absl::StrCat(b.string(), " has another size than ", a.string()));
  }
  return client::Psnr(first->rgb, second->rgb);
}

// Gives each clip of `report`, whose videos are in `folder`, its PSNR to the same video of `first`,
// if both are there.
absl::Status AddPsnr(const fs::path& first, const fs::path& folder, Json& report) {
  for (Json& clip : report.at("clips")) {
    const std::string key = VideoKey(clip.value("mode", ""), clip.value("id", ""));
    const fs::path a = RunFolder::VideoIn(first, key);
    const fs::path b = RunFolder::VideoIn(folder, key);
    if (!fs::exists(a) || !fs::exists(b)) continue;
    const absl::StatusOr<double> psnr = PsnrOfVideos(a, b);
    if (!psnr.ok()) return psnr.status();
    clip["psnr"] = *psnr;
  }
  return absl::OkStatus();
}

// "runs/high" and "runs/high/" are both called "high".
std::string TitleOf(const fs::path& folder) {
  return (folder.has_filename() ? folder : folder.parent_path()).filename().string();
}

absl::StatusOr<std::string> TableOf(const std::vector<std::string>& runs) {
  std::vector<Column> columns;
  for (const std::string& run : runs) {
    absl::StatusOr<Json> report = ReadReport((fs::path(run) / "report.json").string());
    if (!report.ok()) return report.status();
    if (!columns.empty()) {
      absl::Status status = AddPsnr(runs.front(), run, *report);
      if (!status.ok()) return status;
    }
    columns.push_back({.title = TitleOf(run), .report = *std::move(report)});
  }
  return ColumnsTable(columns);
}

}  // namespace

int Columns(const ColumnsOptions& options, const Environment& environment) {
  const absl::StatusOr<std::string> table = TableOf(options.runs);
  if (!table.ok()) {
    Say(environment, table.status().message());
    return client::kExitUsage;
  }
  environment.out << *table;
  return client::kExitDone;
}

}  // namespace wan::demo
