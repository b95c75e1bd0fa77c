// What every command of wanctl works with: where it writes, whom it asks, and how it ends badly.
#pragma once

#include <functional>
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
#include "google/protobuf/message.h"

namespace wan::client {

// Results go to `out`, everything else to `err`.
struct Console {
  std::ostream& out;
  std::ostream& err;
  // Width of the terminal that each writes to; 0: it is no terminal.
  int out_columns = 0;
  int err_columns = 0;
};

// The world outside the command line.
struct Environment {
  Console console;
  // Server without --server.
  std::string default_server = "localhost:50051";
  // Requested by Ctrl-C.
  std::stop_token stop = {};
  // How retries wait.
  BackoffClock& clock = SystemBackoffClock();
  std::function<absl::Time()> now = absl::Now;
};

class Session {
 public:
  // `environment` must outlive it.
  Session(const Environment& environment, const GlobalFlags& flags);

  const Connection& connection() const { return connection_; }
  const Console& console() const { return environment_.console; }
  const std::stop_token& stop() const { return environment_.stop; }
  absl::Time Now() const { return environment_.now(); }
  bool json() const { return flags_.json; }

  // Retries are told to the user.
  VideoClient Videos();

  // Makes a call that needs a model: `call` is () -> absl::StatusOr<T>. While the server answers
  // that the model is being loaded, says so once, waits as long as the server asks, and calls
  // again.
  template <typename Call>
  auto OnceLoaded(const Call& call) -> decltype(call()) {
    auto result = call();
    if (!IsModelLoading(result.status())) return result;
    Say("the model is being loaded, waiting for it");
    do {
      AwaitRetry(result.status());
      result = call();
    } while (IsModelLoading(result.status()));
    return result;
  }

  // A message of the server: itself as JSON, or `text`.
  void Show(const google::protobuf::Message& message, std::string_view text);

  // One line on stderr, begun with the program's name.
  void Say(std::string_view text);

  // Says why a call ended, and a note if there is one; with --json the google.rpc.Status follows as
  // the last line of stderr. Returns the exit code. `accepted` as in ExitCodeOf.
  ExitCode Fail(const absl::Status& status, bool accepted = false, std::string_view note = "");

  // Says what is wrong with a file that the command line names.
  ExitCode RefuseUsage(const absl::Status& status);

 private:
  // Says that it waits before it does.
  class TellingClock final : public BackoffClock {
   public:
    explicit TellingClock(Session& session) : session_(session) {}
    void Wait(absl::Duration delay, const std::stop_token& stop) override;

   private:
    Session& session_;
  };

  static bool IsModelLoading(const absl::Status& status);
  // Until the server wants to be asked again, --timeout has passed, or Ctrl-C.
  void AwaitRetry(const absl::Status& status);

  const Environment& environment_;
  const GlobalFlags flags_;
  const absl::Time deadline_;
  const Connection connection_;
  TellingClock clock_{*this};
};

}  // namespace wan::client
