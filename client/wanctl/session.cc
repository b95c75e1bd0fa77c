#include "client/wanctl/session.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/error.h"
#include "client/wanctl/json_line.h"
#include "client/wanctl/text.h"

namespace wan::client {
namespace {

// The reason in the server's error while a model is being loaded (docs/use/api.md).
constexpr std::string_view kModelLoading = "MODEL_LOADING";
// The reason in the server's error while it has no room for another request.
constexpr std::string_view kServerBusy = "SERVER_BUSY";
// Maximum number of times in a row that a command waits for a busy server, which asks for about a
// second each time.
constexpr int kMostWaits = 60;
// The time to wait if the server sends no retry delay.
constexpr absl::Duration kRetryDelay = absl::Seconds(1);

bool IsModelLoading(const absl::Status& status) {
  return absl::IsUnavailable(status) && DetailsOf(status).reason == kModelLoading;
}

bool IsBusy(const absl::Status& status) { return DetailsOf(status).reason == kServerBusy; }

ConnectionOptions WithDeadline(ConnectionOptions options, absl::Time deadline) {
  options.deadline = deadline;
  return options;
}

}  // namespace

Session::Session(const Environment& environment, const GlobalFlags& flags,
                 ConnectionOptions connection)
    : environment_(environment),
      flags_(flags),
      deadline_(environment.now() + flags.timeout),
      connection_(WithDeadline(std::move(connection), deadline_)) {}

VideoClient Session::Videos() {
  RetryPolicy policy;
  policy.on_retry = [this](int retry, absl::Duration) {
    if (retry == 1) Say(absl::StrCat("no connection to ", flags_.server, ", connecting again"));
  };
  return VideoClient(connection_, policy, environment_.clock);
}

void Session::Show(const google::protobuf::Message& message, std::string_view text) {
  // Flush the stream, so that a program that reads from a pipe sees each line at once.
  if (json()) {
    console().out << JsonLine(message) << '\n' << std::flush;
  } else {
    console().out << text << std::flush;
  }
}

void Session::Say(std::string_view text) {
  // Erase a progress bar on this line.
  if (console().err_columns > 0) console().err << "\r\x1b[K";
  console().err << (console().err_colours ? Coloured("wanctl:", Colour::kBold) : "wanctl:") << ' '
                << text << '\n'
                << std::flush;
}

ExitCode Session::Fail(const absl::Status& status, bool accepted, std::string_view note) {
  const ExitCode code = ExitCodeOf(status, accepted);
  if (absl::IsCancelled(status) && stop().stop_requested()) {
    Say("interrupted");
  } else if (code == kExitUnreachable && !accepted &&
             absl::StrContains(status.message(), "Connection refused")) {
    Say(absl::StrCat("nothing listens on ", flags_.server,
                     "; start wanserve there, or name another server with --server or WAN_SERVER"));
  } else if (code == kExitUnreachable) {
    Say(absl::StrCat(accepted ? "lost the connection to " : "cannot reach ", flags_.server, ": ",
                     Printable({status.message().data(), status.message().size()}),
                     accepted ? ""
                              : "; see that wanserve runs there, with TLS on both sides or on "
                                "neither, or name another server with --server or WAN_SERVER"));
  } else {
    Say(FormatError(status));
  }
  if (!note.empty()) Say(note);
  if (json()) console().err << JsonLine(ToProto(status)) << '\n';
  return code;
}

ExitCode Session::RefuseUsage(const absl::Status& status) {
  Say({status.message().data(), status.message().size()});
  return kExitUsage;
}

bool Session::ShouldWait(const absl::Status& status, int waits) const {
  if (IsModelLoading(status)) return true;
  // A server is busy, for example, while it writes the latents of earlier requests to its disk.
  return IsBusy(status) && waits < kMostWaits && !stop().stop_requested();
}

std::string_view Session::ReasonToWait(const absl::Status& status) {
  return IsBusy(status) ? "the server is busy; waiting for it"
                        : "the server is loading the model; waiting for it";
}

void Session::AwaitRetry(const absl::Status& status) {
  const absl::Duration wanted = DetailsOf(status).retry_delay.value_or(kRetryDelay);
  environment_.clock.Wait(std::min(wanted, deadline_ - Now()), stop());
}

}  // namespace wan::client
