// Reads the command line of wanserve. A flag wins over the --config file, the file over the
// defaults.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "server/config/server_config.h"

namespace wan::server {

struct CommandLine {
  enum class Action {
    kServe,
    kPrintConfig,  // print `config` as YAML and exit with 0
    kPrintText,    // print `text`, which is the help or the version, and exit with 0
  };
  Action action = Action::kServe;
  // Complete and checked for kServe and kPrintConfig, meaningless for kPrintText.
  ServerConfig config;
  std::string text;
};

// Reads the flags and the file that --config names. INVALID_ARGUMENT if a flag or a setting is
// wrong, with one line for each wrong setting; NOT_FOUND if the file cannot be read. The messages
// are meant for the user as they are.
absl::StatusOr<CommandLine> ParseCommandLine(int argc, const char* const* argv);

}  // namespace wan::server
