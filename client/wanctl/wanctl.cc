#include "client/wanctl/wanctl.h"

#include <variant>

#include "client/wanctl/command_line.h"
#include "client/wanctl/commands.h"

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
    Session session(environment, options.global);
    code = std::visit([&](const auto& command) { return Run(session, command); }, options.command);
  }
  // If a result could not be written, for example to a full disk, the command has failed.
  if (!environment.console.out.flush() && code == kExitDone) {
    environment.console.err << "wanctl: cannot write to stdout\n";
    code = kExitFailed;
  }
  return code;
}

}  // namespace wan::client
