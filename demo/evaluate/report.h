// Makes the report of a run, and its table.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "demo/evaluate/run_plan.h"
#include "demo/evaluate/runner.h"

namespace wan::demo {

// Returns everything that two runs must have in common except the server: all that the requests
// contain, and the SHA-256 of the scenes.
nlohmann::ordered_json SettingsOf(const RunOptions& options, const std::string& scenes_sha256);

// Returns {"settings", "resolved": ResolvedJson without the seed, "text": tallies (scores.h),
// "image": tallies with "first_frame", "load": {"videos", "failed", "videos_per_minute",
// "mean_queue_seconds", "mean_job_seconds"}, "clips": [{"mode", "id", score, "job", "seed",
// "queue_seconds", "job_seconds", "first_frame_psnr"}], "failed": [{"mode", "id", "error"}]}.
// Videos that were not made count in "failed" and nowhere else. Times are left out if there are no
// videos.
nlohmann::ordered_json MakeReport(const nlohmann::ordered_json& settings,
                                  const std::vector<VideoOutcome>& outcomes);

// Reads such a report, or what `detect --json` has written. Errors name the file: NOT_FOUND if it
// cannot be opened, INVALID_ARGUMENT if it is no report.
absl::StatusOr<nlohmann::ordered_json> ReadReport(const std::string& path);

// Returns the table of such a report, in Markdown.
std::string ReportTable(const nlohmann::ordered_json& report);

// Returns the videos per minute of the time in which the server worked on some of them; a pause of
// more than 10 s between two videos does not count (a run was ended and continued later).
double VideosPerMinute(const std::vector<VideoResult>& results);

}  // namespace wan::demo
