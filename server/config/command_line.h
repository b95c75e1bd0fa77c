// What wanserve was asked to do: flags over file over defaults.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "server/config/server_config.h"

namespace wan::server {

struct CommandLine {
  enum class Action {
    kServe,
    kPrintConfig,  // print `config` as YAML and exit
    kPrintText,    // print `text` (help or version) and exit
  };
  Action action = Action::kServe;
  // Complete for kServe and kPrintConfig.
  ServerConfig config;
  std::string text;
};

// Reads the flags and, where --config names one, the file. INVALID_ARGUMENT tells everything that
// is wrong with them; NOT_FOUND a file that cannot be read.
absl::StatusOr<CommandLine> ParseCommandLine(int argc, const char* const* argv);

}  // namespace wan::server
