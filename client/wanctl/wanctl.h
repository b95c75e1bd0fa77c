// Runs wanctl within a process, for main.cc and for tests; docs/use/wanctl.md is the manual.
#pragma once

#include <string>
#include <vector>

#include "client/wanctl/session.h"

namespace wan::client {

// `args` are the arguments without the program's name. Returns the exit code.
int RunWanctl(const std::vector<std::string>& args, const Environment& environment);

}  // namespace wan::client
