#include <nlohmann/json.hpp>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "client/connection.h"
#include "client/video_client.h"
#include "client/wanctl/text.h"
#include "demo/evaluate/commands.h"
#include "demo/evaluate/comparison.h"
#include "demo/evaluate/report.h"
#include "demo/evaluate/run_folder.h"
#include "demo/evaluate/runner.h"

namespace wan::demo {
namespace {

using Json = nlohmann::ordered_json;

// Prints why the run has ended early, and returns the exit code.
int Fail(const absl::Status& status, const RunOptions& options, const Environment& environment) {
  const client::ExitCode code = client::ExitCodeOf(status);
  if (absl::IsCancelled(status) && environment.stop.stop_requested()) {
    Say(environment, "interrupted");
  } else if (code == client::kExitUnreachable) {
    Say(environment, absl::StrCat("cannot reach ", options.server, ": ", status.message()));
  } else {
    Say(environment, client::FormatError(status));
  }
  Say(environment, absl::StrCat("jobs that were submitted stay on the server; the same command "
                                "goes on with what is in ",
                                options.output));
  return code;
}

}  // namespace

int Run(const RunOptions& options, const Environment& environment) {
  const auto refuse = [&](const absl::Status& status) {
    Say(environment, status.message());
    return client::kExitUsage;
  };
  const absl::StatusOr<SceneFile> file = ReadScenes(options.scenes);
  if (!file.ok()) return refuse(file.status());
  const absl::StatusOr<std::vector<PlannedVideo>> plan = PlanVideos(file->scenes, options);
  if (!plan.ok()) return refuse(plan.status());
  const Json settings = SettingsOf(options, file->sha256);
  const absl::StatusOr<RunFolder> folder = RunFolder::Open(options.output, settings);
  if (!folder.ok()) return refuse(folder.status());

  const client::Connection connection({.server = options.server});
  const client::VideoClient videos(connection, {}, environment.clock);
  Runner runner(videos, *folder, environment.clock, options.concurrency, environment.err);
  const absl::StatusOr<std::vector<VideoOutcome>> outcomes = runner.Run(*plan, environment.stop);
  if (!outcomes.ok()) return Fail(outcomes.status(), options, environment);

  const Json report = MakeReport(settings, *outcomes);
  const std::string table = ReportTable(report);
  environment.out << table;
  absl::Status written = WriteWhole(folder->path() / "report.json", report.dump(1) + "\n");
  written.Update(WriteWhole(folder->path() / "report.md", table));
  if (!written.ok()) {
    Say(environment, written.message());
    return client::kExitFailed;
  }
  return report.at("failed").empty() ? client::kExitDone : client::kExitFailed;
}

int Compare(const CompareOptions& options, const Environment& environment) {
  const absl::StatusOr<Json> a = ReadReport(options.a);
  const absl::StatusOr<Json> b = ReadReport(options.b);
  absl::Status status = a.status();
  status.Update(b.status());
  if (status.ok()) {
    const absl::StatusOr<std::string> table = CompareReports(*a, *b);
    if (table.ok()) {
      environment.out << *table;
      return client::kExitDone;
    }
    status = table.status();
  }
  Say(environment, status.message());
  return client::kExitUsage;
}

}  // namespace wan::demo
