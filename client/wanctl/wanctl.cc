#include "client/wanctl/wanctl.h"

#include <utility>
#include <variant>

#include "client/wanctl/command_line.h"
#include "client/wanctl/commands.h"
#include "client/wanctl/credentials.h"

namespace wan::client {

int RunWanctl(const std::vector<std::string>& args, const Environment& environment) {
  const std::variant<Options, EarlyExit> parsed =
      ParseCommandLine(args, environment.default_server);
  int code = kExitDone;
  if (const auto* exit = std::get_if<EarlyExit>(&parsed)) {
    environment.console.out << exit->out;
    environment.console.err << exit->err;
    code = exit->code;
  } else {
    const Options& options = std::get<Options>(parsed);
    absl::StatusOr<ConnectionOptions> connection =
        ConnectionOptionsOf(options.global, environment.default_token);
    if (connection.ok()) {
      connection->traceparent = environment.traceparent;
      connection->tracestate = environment.tracestate;
      Session session(environment, options.global, *std::move(connection));
      code =
          std::visit([&](const auto& command) { return Run(session, command); }, options.command);
    } else {
      environment.console.err << "wanctl: " << std::string(connection.status().message()) << '\n';
      code = kExitUsage;
    }
  }
  // The command fails if its result cannot be written, for example because the disk is full.
  if (!environment.console.out.flush() && code == kExitDone) {
    environment.console.err << "wanctl: cannot write to stdout\n";
    code = kExitFailed;
  }
  return code;
}

}  // namespace wan::client
