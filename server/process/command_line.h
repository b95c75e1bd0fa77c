// Parses the command line of wanserve. Flags override the file of --config, which overrides the
// defaults.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "server/config/server_config.h"

namespace wan::server {

struct CommandLine {
  enum class Action {
    kServe,
    kPrintConfig,  // print `config` as YAML, then exit with 0
    kPrintText,    // print `text` (help or version), then exit with 0
  };
  Action action = Action::kServe;
  // With kServe and kPrintConfig the config is complete and checked; with kPrintText it is unused.
  ServerConfig config;
  std::string text;
};

// Reads the flags and the file that --config names. Fails with INVALID_ARGUMENT if a flag or a
// setting is wrong, with one line for each wrong setting; NOT_FOUND if the file cannot be read.
// Print the messages of errors unchanged.
absl::StatusOr<CommandLine> ParseCommandLine(int argc, const char* const* argv);

}  // namespace wan::server
