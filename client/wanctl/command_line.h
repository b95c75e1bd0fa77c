// wanctl's command line; docs/use/wanctl.md describes it.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "client/wanctl/options.h"

namespace wan::client {

// Ends the program without any call: after --help or --version, or with a usage error.
struct EarlyExit {
  int code = 0;
  std::string out;
  std::string err;
};

// `args` without the program's name. `default_server` is what holds without --server; a wrong one
// is a usage error only then. Files are not looked at.
std::variant<Options, EarlyExit> ParseCommandLine(const std::vector<std::string>& args,
                                                  const std::string& default_server);

}  // namespace wan::client
