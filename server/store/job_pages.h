// Puts together the pages of a list of jobs, whichever database has the jobs.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "server/store/job_store.h"
#include "server/store/stored_rows.h"

namespace wan::server {

// Maximum number of rows that are read at once.
inline constexpr int kRowsAtOnce = 64;

// Maximum number of jobs that one scan visits; in SQLite it then takes 2 ms.
inline constexpr int kJobsOfAScan = 1024;

// A column that has the same value in every job of a query. Both databases have an index that
// begins with the column and continues in the query's order; without one, a scan visits all jobs.
struct CommonKey {
  std::string_view column;
  std::variant<int64_t, std::string_view> value;  // a text belongs to the query
};

// Returns the common key by which a scan should look for the jobs of a query; nullopt if there is
// none. Prefers the owner, so that callers do not scan the jobs of others.
std::optional<CommonKey> CommonKeyOf(const JobQuery& query);

// Returns the column by which a list is ordered; `number` is the name of the column that numbers
// the jobs in the order of acceptance.
std::string_view ColumnOf(JobOrderField field, std::string_view number);

// The result of a scan: some of the jobs that a query accepts.
struct JobScan {
  std::vector<JobPlace> found;  // the accepted jobs, in the query's order
  int seen = 0;                 // number of visited jobs
  // The last place that the scan visited; nullopt at the end of all jobs.
  std::optional<JobPlace> end;
};

// Returns the next rows of a query after `after`, in its order: at most `limit`, and none after the
// row that exceeds `bytes`. Stores in `scan` how far the search has come.
using ReadRows = std::function<absl::StatusOr<std::vector<JobRow>>(
    const std::optional<JobPlace>& after, int limit, size_t bytes, JobScan& scan)>;

// Returns a page as JobStore::List does. Leaves out the rows that `to_job` refuses.
absl::StatusOr<JobPage> ReadPage(
    const JobQuery& query, const ReadRows& read_rows,
    const std::function<absl::StatusOr<StoredJob>(const JobRow&)>& to_job);

}  // namespace wan::server
