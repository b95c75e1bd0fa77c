// The command `wanserve repair`.
#pragma once

#include <ostream>

#include "engine/api/clock.h"

namespace wan::server {

// Returns whether the arguments of the process are those of this command.
bool IsRepairCommand(int argc, const char* const* argv);

// Checks and repairs the job database of a data folder (server/store/repair.h), and says on `out`
// what was found, kept and lost. Returns the exit code: 0 if the database is whole or was repaired
// without a loss, 1 if nothing was done, for the reason on `err`, 2 if the arguments are wrong, 3
// if it was repaired and something is lost.
int RunRepairCommand(int argc, const char* const* argv, const Clock& clock, std::ostream& out,
                     std::ostream& err);

}  // namespace wan::server
