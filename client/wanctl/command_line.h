// Parses wanctl's command line, which docs/use/wanctl.md describes.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "client/wanctl/options.h"

namespace wan::client {

// Says that the program ends without calling a server: after --help or --version, or with a usage
// error.
struct EarlyExit {
  int code = 0;
  std::string out;
  std::string err;
};

// `args` does not include the program's name. `default_server` is used, and checked, only if
// --server is not given. The function reads no files.
std::variant<Options, EarlyExit> ParseCommandLine(const std::vector<std::string>& args,
                                                  const std::string& default_server);

}  // namespace wan::client
