// Reads and writes the rows with the input files of one job.
#pragma once

#include <SQLiteCpp/SQLiteCpp.h>

#include <cstdint>
#include <string_view>

#include "server/conversion/job_inputs.h"

namespace wan::server {

// Call all functions of this file with the connection's lock held, and those that write inside a
// transaction. The functions throw the exceptions of SQLite. `number` is the job's number in the
// table jobs.

// Leaves out the files that `inputs.artifacts` names.
void InsertInputs(SQLite::Database& db, int64_t number, const JobInputs& inputs);

void DeleteInputs(SQLite::Database& db, int64_t number);

// Returns the files of the job called `job`; none if there is no such job.
JobInputs ReadInputs(SQLite::Database& db, std::string_view job);

}  // namespace wan::server
