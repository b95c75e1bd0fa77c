// Runs `wanserve token create|list|revoke`, which changes the file of principals
// (docs/operate/security.md).
#pragma once

#include <ostream>

#include "engine/api/clock.h"

namespace wan::server {

// Returns whether the process's arguments call this command.
bool IsTokenCommand(int argc, const char* const* argv);

// Runs the command and returns the exit code: 0 done, 1 the file cannot be used, 2 wrong arguments.
// `create` prints only the token to `out`; the file contains only its hash.
int RunTokenCommand(int argc, const char* const* argv, const Clock& clock, std::ostream& out,
                    std::ostream& err);

}  // namespace wan::server
