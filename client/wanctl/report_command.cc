#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "client/error.h"
#include "client/reports/render.h"
#include "client/reports/report.h"
#include "client/video_client.h"
#include "client/wanctl/commands.h"
#include "client/wanctl/job_video.h"
#include "client/wanctl/report_files.h"
#include "client/wanctl/scratch_folder.h"
#include "client/wanctl/text.h"

namespace wan::client {
namespace {

// Adds the frames of jobs that have a video. If frames cannot be fetched, tells the user and makes
// the report without them.
void AddFrames(Session& session, std::span<reports::Run> runs) {
  ScratchFolder scratch;
  for (reports::Run& run : runs) {
    absl::StatusOr<std::vector<std::string>> frames = FetchFrames(session, run.report, scratch);
    if (frames.ok()) {
      run.frames = *std::move(frames);
    } else {
      session.Say(absl::StrCat("the report has no frames of ", Printable(run.report.job()), ": ",
                               FormatError(frames.status())));
    }
  }
}

}  // namespace

ExitCode Run(Session& session, const ReportCommand& command) {
  // Read the files that the command line names before calling the server.
  absl::StatusOr<std::vector<reports::Ceilings>> ceilings = NamedCeilings(command.flags.ceilings);
  if (!ceilings.ok()) return session.RefuseUsage(ceilings.status());
  std::vector<reports::Run> runs;
  for (const std::string& path : command.from) {
    const std::optional<std::string> text = reports::ReadFile(path);
    if (!text.has_value()) {
      return session.RefuseUsage(absl::NotFoundError(path + " cannot be read, or is empty"));
    }
    absl::StatusOr<std::vector<reports::Run>> read = reports::ParseRuns(*text, path);
    if (!read.ok()) return session.RefuseUsage(read.status());
    runs.insert(runs.end(), std::make_move_iterator(read->begin()),
                std::make_move_iterator(read->end()));
  }
  for (const std::string& job : command.jobs) {
    const absl::StatusOr<wan::v1::JobReport> report =
        session.Videos().GetReport(job, session.stop());
    if (!report.ok()) return session.Fail(report.status());
    if (session.json()) session.Show(*report, "");
    runs.push_back(reports::RunOf(*report));
  }
  const ReportFormat format = command.flags.format.value_or(
      FormatOfPath(command.flags.output).value_or(ReportFormat::kTable));
  if (IsFolder(command.flags.output) || format == ReportFormat::kHtml ||
      format == ReportFormat::kJson) {
    AddFrames(session, std::span(runs).last(command.jobs.size()));
  }
  if (command.flags.ceilings.empty()) {
    *ceilings = KeptCeilings(session.data_home(), runs,
                             [&](const std::string& message) { session.Say(message); });
  }
  // With --json the messages are the result; write a report only if the command line names a file
  // for it.
  if (session.json() && command.flags.output.empty()) return kExitDone;
  if (IsFolder(command.flags.output)) {
    const absl::Status written = WriteReports(
        command.flags.output, reports::BuildReport(runs, *ceilings, command.flags.parts), runs);
    return written.ok() ? kExitDone : session.RefuseUsage(written);
  }
  const reports::Document document =
      format == ReportFormat::kTable && command.flags.parts.empty()
          ? reports::BuildTables(runs)
          : reports::BuildReport(runs, *ceilings, command.flags.parts);
  if (command.flags.output.empty()) {
    session.console().out << Rendered(document, runs, format, session.console().out_columns)
                          << std::flush;
    return kExitDone;
  }
  const absl::Status written = WriteFile(command.flags.output, Rendered(document, runs, format));
  return written.ok() ? kExitDone : session.RefuseUsage(written);
}

}  // namespace wan::client
