// Runs the command `wanserve repair`.
#pragma once

#include <ostream>

#include "engine/api/clock.h"

namespace wan::server {

// Whether the arguments of the process call this command.
bool IsRepairCommand(int argc, const char* const* argv);

// Checks and repairs the job database of a data folder (server/store/repair.h), and prints to `out`
// what was found, kept and lost. Returns the exit code: 0 if the database is undamaged or was
// repaired without loss, 1 if nothing was done (`err` has the reason), 2 for wrong arguments, 3 if
// it was repaired with losses.
int RunRepairCommand(int argc, const char* const* argv, const Clock& clock, std::ostream& out,
                     std::ostream& err);

}  // namespace wan::server
