// Runs `wanserve token create|list|revoke`, which changes the file of principals
// (docs/operate/security.md).
#pragma once

#include <ostream>

#include "engine/api/clock.h"

namespace wan::server {

// Whether the arguments of the process call this command.
bool IsTokenCommand(int argc, const char* const* argv);

// Runs the command and returns the exit code: 0 if it is done, 1 if the file cannot be used, 2 for
// wrong arguments. `create` prints only the token to `out`; the file gets only the token's hash.
int RunTokenCommand(int argc, const char* const* argv, const Clock& clock, std::ostream& out,
                    std::ostream& err);

}  // namespace wan::server
