// wanserve token create|list|revoke: changes the file of principals (docs/operate/security.md).
#pragma once

#include <ostream>

#include "engine/api/clock.h"

namespace wan::server {

// Whether the arguments ask for it: `wanserve token ...`.
bool IsTokenCommand(int argc, const char* const* argv);

// Carries the command out and returns the exit code: 0, 1 if the file cannot be used, 2 for wrong
// arguments. `create` writes the token alone to `out`, once; the file keeps only its hash.
int RunTokenCommand(int argc, const char* const* argv, const Clock& clock, std::ostream& out,
                    std::ostream& err);

}  // namespace wan::server
