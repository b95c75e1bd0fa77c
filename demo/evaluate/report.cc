#include "demo/evaluate/report.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "demo/evaluate/scores.h"

namespace wan::demo {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kPause = 10;  // in seconds
constexpr std::array<const char*, 5> kShares = {"colour", "motion", "shape", "background", "count"};

// Returns the part of the report for one mode; empty if the mode has no videos.
Json ModeReport(VideoMode mode, const std::vector<VideoOutcome>& outcomes, Json& clips) {
  Tallies tallies;
  GroupTallies groups;
  for (const VideoOutcome& outcome : outcomes) {
    if (outcome.video->mode != mode || !outcome.result) continue;
    const Scene& scene = *outcome.video->scene;
    const VideoResult& result = *outcome.result;
    const SceneScore score = ScoreScene(scene, result.sight);
    AddTo(tallies, scene, score);
    AddTo(groups, scene, score);
    Json clip = {{"mode", NameOf(mode)}, {"id", scene.id}};
    clip.update(ToJson(score));
    clip["job"] = result.job;
    clip["seed"] = result.request.value("seed", int64_t{0});
    clip["queue_seconds"] = result.start_time - result.create_time;
    clip["job_seconds"] = result.end_time - result.start_time;
    if (result.first_frame_psnr) {
      TallyOf(tallies, scene).levels["first_frame"].Add(*result.first_frame_psnr);
      clip["first_frame_psnr"] = *result.first_frame_psnr;
    }
    clips.push_back(std::move(clip));
  }
  Json report = ToJson(tallies);
  if (!groups.empty()) report["groups"] = ToJson(groups);
  return report;
}

// Returns the settings as the server resolved them, which all videos share except for the seed.
Json ResolvedSettings(const std::vector<VideoOutcome>& outcomes) {
  const auto made = std::find_if(outcomes.begin(), outcomes.end(),
                                 [](const VideoOutcome& outcome) { return outcome.result; });
  Json resolved = made == outcomes.end() ? Json::object() : made->result->request;
  resolved.erase("seed");
  return resolved;
}

Json LoadReport(const std::vector<VideoOutcome>& outcomes) {
  std::vector<VideoResult> results;
  double queue_seconds = 0, job_seconds = 0;
  for (const VideoOutcome& outcome : outcomes) {
    if (!outcome.result) continue;
    results.push_back(*outcome.result);
    queue_seconds += outcome.result->start_time - outcome.result->create_time;
    job_seconds += outcome.result->end_time - outcome.result->start_time;
  }
  Json load = {{"videos", results.size()}, {"failed", outcomes.size() - results.size()}};
  if (results.empty()) return load;
  const double videos = static_cast<double>(results.size());
  load["videos_per_minute"] = VideosPerMinute(results);
  load["mean_queue_seconds"] = queue_seconds / videos;
  load["mean_job_seconds"] = job_seconds / videos;
  return load;
}

std::string ShareCell(const Json& mode, const char* count, const char* measure) {
  if (!mode.contains(count)) return "";
  const Json& share = mode.at(count).at(measure);
  return absl::StrFormat("%.1f %% (%d of %d)", 100 * share.at("share").get<double>(),
                         share.at("right").get<int>(), share.at("of").get<int>());
}

std::string FirstFrameCell(const Json& mode, const char* count) {
  if (!mode.contains(count) || !mode.at(count).contains("first_frame")) return "";
  const Json& frames = mode.at(count).at("first_frame");
  return absl::StrFormat("%.1f dB, worst %.1f", frames.at("mean_db").get<double>(),
                         frames.at("worst_db").get<double>());
}

std::string OutlineCell(const Json& mode, const char* count) {
  if (!mode.contains(count)) return "";
  const Json& outline = mode.at(count).at("outline");
  return absl::StrFormat("%.3f, %.3f", outline.at("median").get<double>(),
                         outline.at("tenth").get<double>());
}

std::string Row(const std::string& name, const std::string& one, const std::string& two) {
  return absl::StrCat("| ", name, " | ", one, " | ", two, " |\n");
}

}  // namespace

Json SettingsOf(const RunOptions& options, const std::string& scenes_sha256) {
  Json settings = {
      {"model", options.model}, {"scenes_sha256", scenes_sha256}, {"seed", options.seed}};
  if (!options.negative_prompt.empty()) settings["negative_prompt"] = options.negative_prompt;
  if (options.without_negative_prompts) settings["without_negative_prompts"] = true;
  if (options.steps) settings["steps"] = *options.steps;
  if (options.guidance) settings["guidance"] = *options.guidance;
  if (options.width) settings["width"] = *options.width;
  if (options.height) settings["height"] = *options.height;
  if (options.frames) settings["frames"] = *options.frames;
  if (options.shift) settings["shift"] = *options.shift;
  if (options.solver != wan::v1::SOLVER_UNSPECIFIED) {
    settings["solver"] = wan::v1::Solver_Name(options.solver);
  }
  if (options.quality != wan::v1::QUALITY_UNSPECIFIED) {
    settings["quality"] = wan::v1::Quality_Name(options.quality);
  }
  if (options.priority != 0) settings["priority"] = options.priority;
  if (!options.note.empty()) settings["note"] = options.note;
  return settings;
}

double VideosPerMinute(const std::vector<VideoResult>& results) {
  std::vector<std::pair<double, double>> spans;
  for (const VideoResult& result : results) {
    spans.emplace_back(result.start_time, result.end_time);
  }
  std::sort(spans.begin(), spans.end());
  double seconds = 0;
  double reached = spans.empty() ? 0 : spans.front().first;
  for (const auto& [start, end] : spans) {
    if (start - reached > kPause) reached = start;
    seconds += std::max(0.0, end - reached);
    reached = std::max(reached, end);
  }
  return seconds > 0 ? 60 * double(results.size()) / seconds : 0;
}

Json MakeReport(const Json& settings, const std::vector<VideoOutcome>& outcomes) {
  Json report = {{"settings", settings}};
  if (Json resolved = ResolvedSettings(outcomes); !resolved.empty()) {
    report["resolved"] = std::move(resolved);
  }
  Json clips = Json::array();
  for (const VideoMode mode : {VideoMode::kTextToVideo, VideoMode::kImageToVideo}) {
    Json part = ModeReport(mode, outcomes, clips);
    if (!part.empty()) report[NameOf(mode)] = std::move(part);
  }
  report["load"] = LoadReport(outcomes);
  report["clips"] = std::move(clips);
  Json failed = Json::array();
  for (const VideoOutcome& outcome : outcomes) {
    if (outcome.result) continue;
    failed.push_back({{"mode", NameOf(outcome.video->mode)},
                      {"id", outcome.video->scene->id},
                      {"error", outcome.error.ToString()}});
  }
  report["failed"] = std::move(failed);
  return report;
}

absl::StatusOr<Json> ReadReport(const std::string& path) {
  std::ifstream file(path);
  if (!file) return absl::NotFoundError(absl::StrCat("cannot open ", path));
  Json report = Json::parse(file, nullptr, /*allow_exceptions=*/false);
  if (report.is_object() && report.contains("clips")) return report;
  return absl::InvalidArgumentError(absl::StrCat(path, " is no report of demo_evaluate"));
}

std::string ReportTable(const Json& report) {
  std::string text = Row("measure", "one object", "two objects") + Row("---", "---", "---");
  for (const auto& [mode, title] :
       {std::pair{"text", "text to video"}, std::pair{"image", "image to video"}}) {
    if (!report.contains(mode)) continue;
    const Json& part = report.at(mode);
    for (const char* share : kShares) {
      text += Row(absl::StrCat(title, ": ", share), ShareCell(part, "one", share),
                  ShareCell(part, "two", share));
    }
    text += Row(absl::StrCat(title, ": outline, median and tenth"), OutlineCell(part, "one"),
                OutlineCell(part, "two"));
    const std::string one = FirstFrameCell(part, "one"), two = FirstFrameCell(part, "two");
    if (!one.empty() || !two.empty()) text += Row(absl::StrCat(title, ": first frame"), one, two);
  }
  const Json& load = report.at("load");
  absl::StrAppend(&text, "\n| load | |\n| --- | --- |\n",
                  absl::StrFormat("| videos | %d (and %d not made) |\n",
                                  load.at("videos").get<int>(), load.at("failed").get<int>()));
  if (load.contains("videos_per_minute")) {
    absl::StrAppend(
        &text, absl::StrFormat("| videos per minute | %.1f |\n| mean wait in the queue | %.1f s |\n"
                               "| mean time of a job | %.2f s |\n",
                               load.at("videos_per_minute").get<double>(),
                               load.at("mean_queue_seconds").get<double>(),
                               load.at("mean_job_seconds").get<double>()));
  }
  return text;
}

}  // namespace wan::demo
