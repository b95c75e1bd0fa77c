// Searches the list of jobs in PostgreSQL.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "server/postgres/connection.h"
#include "server/store/job_pages.h"
#include "server/store/job_store.h"
#include "server/store/stored_rows.h"

namespace wan::server {

// Returns the next rows of a query after `after`, in its order: at most `limit`, and none after the
// row that exceeds `bytes`. Visits at most kJobsOfAScan jobs; of a query with an owner, only that
// owner's. Stores in `scan` how far the search has come.
std::vector<JobRow> ScanRows(Connection& connection, const JobQuery& query,
                             const std::optional<JobPlace>& after, int limit, size_t bytes,
                             JobScan& scan);

}  // namespace wan::server
