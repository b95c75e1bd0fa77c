// A run's table.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "demo/evaluate/run_plan.h"
#include "demo/evaluate/runner.h"

namespace wan::demo {

// What makes two runs the same but for the server: everything that the requests hold, and the
// scenes by their SHA-256.
nlohmann::ordered_json SettingsOf(const RunOptions& options, const std::string& scenes_sha256);

// {"settings", "resolved": ResolvedJson without the seed, "text": tallies (scores.h), "image":
// tallies with "first_frame", "load": {"videos", "failed", "videos_per_minute",
// "mean_queue_seconds", "mean_job_seconds"}, "clips": [{"mode", "id", score, "job", "seed",
// "queue_seconds", "job_seconds", "first_frame_psnr"}], "failed": [{"mode", "id", "error"}]}.
// Videos that were not made count in "failed" and nowhere else. Times are left out without videos.
nlohmann::ordered_json MakeReport(const nlohmann::ordered_json& settings,
                                  const std::vector<VideoOutcome>& outcomes);

// Of such a report, as Markdown.
std::string ReportTable(const nlohmann::ordered_json& report);

// Videos a minute over the time in which the server worked on some of them; a pause between two
// of more than 10 s (a run that was ended and went on later) does not count.
double VideosPerMinute(const std::vector<VideoResult>& results);

}  // namespace wan::demo
