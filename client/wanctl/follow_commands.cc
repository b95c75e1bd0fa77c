#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "client/download.h"
#include "client/error.h"
#include "client/model_client.h"
#include "client/video_client.h"
#include "client/wanctl/batch.h"
#include "client/wanctl/commands.h"
#include "client/wanctl/defaults.h"
#include "client/wanctl/display.h"
#include "client/wanctl/outputs.h"
#include "client/wanctl/receipt_comparison.h"
#include "client/wanctl/report_files.h"
#include "client/wanctl/request.h"
#include "client/wanctl/step_ratios.h"
#include "client/wanctl/text.h"

namespace wan::client {
namespace {

// Shows a job's events as they come, and reports how the job ended.
class Follower {
 public:
  // `display` shows the progress unless --json is set.
  Follower(Session& session, Display& display, const PreviewWriter& previews)
      : session_(session), display_(display), previews_(previews) {}

  void Take(const wan::v1::Event& event) {
    if (!event.job().empty()) job_ = event.job();
    if (event.has_preview()) {
      const absl::Status written = previews_.Write(event.preview());
      if (!written.ok()) session_.Say({written.message().data(), written.message().size()});
    }
    if (session_.json()) {
      session_.Show(event, "");
    } else {
      display_.Show(event);
    }
  }

  // The job's name, "jobs/ID"; empty before the first event.
  const std::string& job() const { return job_; }

  // Reports how the job has ended, and returns the exit code. `end` is the last event of the job,
  // or the error of the call. `when_stopped` tells the user what happens to the job if the user has
  // stopped the call.
  ExitCode Finish(const absl::StatusOr<wan::v1::Event>& end, const std::string& when_stopped) {
    display_.Clear();
    if (!end.ok()) {
      const bool accepted = !job_.empty();
      std::string note;
      if (accepted) {
        const ExitCode code = ExitCodeOf(end.status(), accepted);
        if (code == kExitCancelled) note = absl::StrCat(Printable(job_), " ", when_stopped);
        if (code == kExitUnreachable) {
          note = absl::StrCat("'wanctl watch ", Printable(job_), "' shows how it goes on");
        }
      }
      return session_.Fail(end.status(), accepted, note);
    }
    const std::string job = Printable(end->job());
    if (end->has_failed()) {
      session_.Say(absl::StrCat(job, " failed: ", FormatError(FromProto(end->failed().status()))));
    } else if (end->has_cancelled()) {
      session_.Say(absl::StrCat(job, " was cancelled: ", Printable(end->cancelled().reason())));
    }
    return ExitCodeOf(*end);
  }

 private:
  Session& session_;
  Display& display_;
  const PreviewWriter& previews_;
  std::string job_;
};

// Cancels the job after Ctrl-C, because the server would keep a job with a request_id for a while
// after its caller has gone. Do not pass session.stop() to the call, because that stop is already
// requested.
void CancelIfStopped(Session& session, const Follower& follower) {
  if (!session.stop().stop_requested() || follower.job().empty()) return;
  session.Videos().CancelJob(follower.job()).status().IgnoreError();
}

}  // namespace

namespace {

// Makes one video and writes it to `wanted`; empty: to a file that is named after prompt and job.
ExitCode Generate(Session& session, const wan::v1::GenerationRequest& request,
                  const std::vector<OutputFile>& wanted, const PreviewWriter& previews) {
  // The default name contains the job's ID, so only the folder can be checked before the job
  // exists.
  const auto outputs_of = [&](const std::string& job) {
    if (!wanted.empty()) return wanted;
    return std::vector{DefaultOutput(request.prompt(), job, wan::v1::OUTPUT_KIND_MP4)};
  };
  if (const absl::Status status = CheckOutputs(outputs_of("jobs/new")); !status.ok()) {
    return session.RefuseUsage(status);
  }
  // Progress goes to stderr, because stdout is for the names of the files.
  Display display(session.console().err, session.console().err_columns);
  Follower follower(session, display, previews);
  const absl::StatusOr<wan::v1::Event> end = session.OnceReady([&] {
    return session.Videos().Generate(
        request, [&](const wan::v1::Event& event) { follower.Take(event); }, session.stop());
  });
  if (!end.ok() && !request.request_id().empty()) CancelIfStopped(session, follower);
  const ExitCode code = follower.Finish(end, "ends with this call");
  if (code != kExitDone) return code;
  const ExitCode fetched = FetchOutputs(session, display, end->job(), end->completed().artifacts(),
                                        outputs_of(end->job()), kExitFailed);
  // Print the seed last, so that the user finds it easily.
  if (fetched == kExitDone) SaySeed(session, request, end->job());
  return fetched;
}

}  // namespace

ExitCode Run(Session& session, const GenerateCommand& command) {
  absl::StatusOr<wan::v1::GenerationRequest> request =
      CompleteRequest(command.flags, session.Now());
  if (!request.ok()) return session.RefuseUsage(request.status());
  const PreviewWriter previews(command.preview_dir);
  if (const absl::Status status = previews.Prepare(); !status.ok()) {
    return session.RefuseUsage(status);
  }
  if (const auto refused = RequestDefaults(session).FillIn(command.flags.seconds, *request)) {
    return *refused;
  }
  if (command.count == 1) return Generate(session, *request, command.outputs, previews);
  for (int32_t i = 0; i < command.count; ++i) {
    const ExitCode code =
        Generate(session, Numbered(*request, i), NumberedOutputs(command.outputs, i),
                 PreviewWriter(command.preview_dir, i + 1));
    if (code != kExitDone) return code;
  }
  return kExitDone;
}

ExitCode Run(Session& session, const WatchCommand& command) {
  const PreviewWriter previews(command.preview_dir);
  if (const absl::Status status = previews.Prepare(); !status.ok()) {
    return session.RefuseUsage(status);
  }
  // The events are the result of this command, so print them on stdout.
  Display display(session.console().out, session.console().out_columns);
  Follower follower(session, display, previews);
  const absl::StatusOr<wan::v1::Event> end = session.Videos().WatchJob(
      command.job, command.after, [&](const wan::v1::Event& event) { follower.Take(event); },
      session.stop());
  return follower.Finish(end, "goes on by itself");
}

ExitCode Run(Session& session, const ReplayCommand& command) {
  const absl::StatusOr<wan::v1::Receipt> then =
      session.Videos().GetReceipt(command.job, session.stop());
  if (!then.ok()) return session.Fail(then.status());
  const std::string job = Printable(command.job);
  if (then->artifacts().empty()) {
    session.Say(absl::StrCat(job, " has made no file that a replay could be compared with"));
    return kExitRejected;
  }
  const absl::StatusOr<wan::v1::GenerationRequest> request = ReplayRequest(*then, command);
  if (!request.ok()) return session.RefuseUsage(request.status());

  const PreviewWriter no_previews("");
  Display display(session.console().err, session.console().err_columns);
  Follower follower(session, display, no_previews);
  const absl::StatusOr<wan::v1::Event> end = session.OnceReady([&] {
    return session.Videos().Generate(
        *request, [&](const wan::v1::Event& event) { follower.Take(event); }, session.stop());
  });
  if (!end.ok()) CancelIfStopped(session, follower);
  const ExitCode code = follower.Finish(end, "ends with this call");
  if (code != kExitDone) return code;
  const absl::StatusOr<wan::v1::Receipt> now =
      session.Videos().GetReceipt(end->job(), session.stop());
  if (!now.ok()) return session.Fail(now.status(), /*accepted=*/true);
  const std::string text = ComparisonText(*then, *now);
  session.Show(*now, text);
  if (session.json()) session.console().err << text;
  return ArtifactDifferences(*then, *now).empty() ? kExitDone : kExitDifferent;
}

ExitCode Run(Session& session, const CalibrateCommand& command) {
  absl::StatusOr<wan::v1::GenerationRequest> request =
      CompleteRequest(command.flags, session.Now());
  if (!request.ok()) return session.RefuseUsage(request.status());
  if (const auto refused = RequestDefaults(session).FillIn(command.flags.seconds, *request)) {
    return *refused;
  }
  if (const absl::Status status = CheckDestination(command.output); !status.ok()) {
    return session.RefuseUsage(status);
  }
  const PreviewWriter no_previews("");
  Display display(session.console().err, session.console().err_columns);
  Follower follower(session, display, no_previews);
  const absl::StatusOr<wan::v1::Event> end = session.OnceReady([&] {
    return session.Videos().Generate(
        *request, [&](const wan::v1::Event& event) { follower.Take(event); }, session.stop());
  });
  const ExitCode code = follower.Finish(end, "ends with this call");
  if (code != kExitDone) return code;
  const absl::StatusOr<wan::v1::JobReport> report =
      session.Videos().GetReport(end->job(), session.stop());
  if (!report.ok()) return session.Fail(report.status(), /*accepted=*/true);
  const absl::StatusOr<wan::v1::Model> model =
      ModelClient(session.connection()).GetModel(request->model(), session.stop());
  if (!model.ok()) return session.Fail(model.status(), /*accepted=*/true);
  const absl::StatusOr<std::string> file = StepRatiosFile(*report, model->family());
  if (!file.ok()) {
    session.Say(absl::StrCat(Printable(end->job()), " ", file.status().message()));
    return kExitFailed;
  }
  session.Show(*report, absl::StrCat(Printable(command.output), "\n"));
  if (const absl::Status written = WriteFile(command.output, *file); !written.ok()) {
    session.Say({written.message().data(), written.message().size()});
    return kExitFailed;
  }
  session.Say(absl::StrCat("put it on the server as ",
                           // A model given as separate files (KEY=PATH) has no single folder.
                           model->layout() == "files" ? "FOLDER/"
                           : model->path().empty()    ? ""
                                                      : absl::StrCat(Printable(model->path()), "/"),
                           "step_ratios.json and load the model again"));
  return kExitDone;
}

}  // namespace wan::client
