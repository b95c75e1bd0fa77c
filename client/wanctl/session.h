// The parts that all commands use: output streams, the connection to the server, and error
// messages.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <ostream>
#include <stop_token>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "client/connection.h"
#include "client/retry.h"
#include "client/video_client.h"
#include "client/wanctl/exit_code.h"
#include "client/wanctl/options.h"
#include "client/wanctl/screen.h"
#include "google/protobuf/message.h"

namespace wan::client {

// The results of commands go to `out`, everything else to `err`.
struct Console {
  std::ostream& out;
  std::ostream& err;
  // The width of each stream's terminal in columns; 0 if the stream is not a terminal.
  int out_columns = 0;
  int err_columns = 0;
  // Whether each stream is a terminal whose user wants colours.
  bool out_colours = false;
  bool err_colours = false;
};

// wanctl's view of its process; tests replace it.
struct Environment {
  Console console;
  // The server to call if --server is not given.
  std::string default_server = "localhost:50051";
  // The token to send if --token-file is not given; empty: no token.
  std::string default_token = {};
  // The trace context of the program that called wanctl; empty: no context.
  std::string traceparent = {};
  std::string tracestate = {};
  // The data folder of the user, in which the files of ceilings are; empty: unknown.
  std::string data_home = {};
  // The folder of the program wanctl, from which the files that belong to it are found.
  std::filesystem::path program_folder = {};
  // Ctrl-C requests this stop.
  std::stop_token stop = {};
  // The clock by which retries wait.
  BackoffClock& clock = SystemBackoffClock();
  std::function<absl::Time()> now = absl::Now;
  // Returns the screen of the terminal; null if there is no terminal.
  std::function<std::unique_ptr<Screen>()> open_screen = [] { return nullptr; };
};

class Session {
 public:
  // `environment` must outlive this object. `connection` is the result of ConnectionOptionsOf.
  Session(const Environment& environment, const GlobalFlags& flags, ConnectionOptions connection);

  const Connection& connection() const { return connection_; }
  const Console& console() const { return environment_.console; }
  const std::stop_token& stop() const { return environment_.stop; }
  absl::Time Now() const { return environment_.now(); }
  const std::string& data_home() const { return environment_.data_home; }
  const std::filesystem::path& program_folder() const { return environment_.program_folder; }
  bool json() const { return flags_.json; }
  bool out_colours() const { return environment_.console.out_colours; }
  std::unique_ptr<Screen> OpenScreen() { return environment_.open_screen(); }

  // Returns a client that tells the user when it begins to retry a call.
  VideoClient Videos();

  // Makes a call that creates or quotes jobs; `call` is a function () -> absl::StatusOr<T>. While
  // the server answers that the model is being loaded, or that it is busy (for about a minute),
  // tells the user once, waits for the retry delay and calls again.
  template <typename Call>
  auto OnceReady(const Call& call) -> decltype(call()) {
    auto result = call();
    for (int waits = 0; ShouldWait(result.status(), waits); ++waits) {
      if (waits == 0) Say(ReasonToWait(result.status()));
      AwaitRetry(result.status());
      result = call();
    }
    return result;
  }

  // Prints a message that the server sent: as a line of JSON with --json, otherwise as `text`.
  void Show(const google::protobuf::Message& message, std::string_view text);

  // Prints "wanctl: TEXT" on stderr.
  void Say(std::string_view text);

  // Prints on stderr the error of a call and the note (which may be empty); with --json, the
  // google.rpc.Status follows as the last line. Returns the exit code for the error. `accepted` has
  // the same meaning as in ExitCodeOf.
  ExitCode Fail(const absl::Status& status, bool accepted = false, std::string_view note = "");

  // Prints why a file that the command line names cannot be used. Returns the exit code for wrong
  // usage.
  ExitCode RefuseUsage(const absl::Status& status);

 private:
  // Whether a call should be repeated after `waits` waits.
  bool ShouldWait(const absl::Status& status, int waits) const;
  static std::string_view ReasonToWait(const absl::Status& status);
  // Waits for the retry delay that the server names in `status`, or until --timeout or Ctrl-C ends
  // the wait.
  void AwaitRetry(const absl::Status& status);

  const Environment& environment_;
  const GlobalFlags flags_;
  const absl::Time deadline_;
  const Connection connection_;
};

}  // namespace wan::client
