// wanctl's command line; docs/use/wanctl.md describes it.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "client/wanctl/options.h"

namespace wan::client {

// The program ends without a call: after --help or --version, or with a usage error.
struct EarlyExit {
  int code = 0;
  std::string out;
  std::string err;
};

// `args` excludes the program's name. `default_server` is used without --server, and only then
// checked. Reads no files.
std::variant<Options, EarlyExit> ParseCommandLine(const std::vector<std::string>& args,
                                                  const std::string& default_server);

}  // namespace wan::client
