#include <memory>

#include "absl/status/statusor.h"
#include "client/telemetry_client.h"
#include "client/video_client.h"
#include "client/wanctl/commands.h"
#include "client/wanctl/text.h"
#include "client/wanctl/top_view.h"

namespace wan::client {
namespace {

// The largest page that the server returns, which is more than fits on a screen.
constexpr int kJobs = 1000;

// Fetches the state of the server again. After an error the other members of `state` keep their old
// values.
absl::Status Refresh(Session& session, TopState& state) {
  state.time = session.Now();
  const TelemetryClient telemetry(session.connection());
  absl::StatusOr<wan::v1::ServerInfo> info = telemetry.GetServerInfo(session.stop());
  if (!info.ok()) return info.status();
  state.info = *std::move(info);

  wan::v1::ListJobsRequest request;
  request.add_states(wan::v1::JOB_STATE_RUNNING);
  request.add_states(wan::v1::JOB_STATE_QUEUED);
  request.set_page_size(kJobs);
  // In this order the page has the jobs that will run next.
  request.set_order_by("priority desc");
  const VideoClient videos(session.connection(), {.max_retries = 0});
  const absl::StatusOr<wan::v1::ListJobsResponse> page = videos.ListJobs(request, session.stop());
  if (!page.ok()) return page.status();
  state.jobs.assign(page->jobs().begin(), page->jobs().end());
  SortForTop(state.jobs);

  wan::v1::WatchDevicesRequest once;
  once.set_count(1);
  return telemetry.WatchDevices(
      once,
      [&state](const wan::v1::WatchDevicesResponse& samples) {
        if (!samples.has_heartbeat()) state.devices = samples;
      },
      session.stop());
}

}  // namespace

ExitCode Run(Session& session, const TopCommand& command) {
  TopState state;
  state.server = session.connection().server();
  absl::Status status = Refresh(session, state);
  // Open the screen only when the first answer has come.
  if (!status.ok()) return session.Fail(status);
  const std::unique_ptr<Screen> screen = session.OpenScreen();
  if (screen == nullptr) {
    session.console().out << RenderTop(state, {}, session.out_colours()) << '\n';
    return kExitDone;
  }
  while (!session.stop().stop_requested()) {
    state.problem =
        status.ok() ? "" : Printable({status.message().data(), status.message().size()});
    screen->Draw(RenderTop(state, screen->size(), session.out_colours()));
    const char key = screen->AwaitKey(command.interval, session.stop());
    if (key == 'q' || key == 'Q') break;
    status = Refresh(session, state);
    if (absl::IsDeadlineExceeded(status)) return session.Fail(status);
  }
  return kExitDone;
}

}  // namespace wan::client
