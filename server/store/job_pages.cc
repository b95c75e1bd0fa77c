#include "server/store/job_pages.h"

#include <algorithm>
#include <utility>

namespace wan::server {

absl::StatusOr<JobPage> ReadPage(
    const JobQuery& query, const ReadRows& read_rows,
    const std::function<absl::StatusOr<StoredJob>(const JobRow&)>& to_job) {
  JobPage page;
  page.next = query.after;
  for (int seen = 0; seen < kJobsOfAScan;) {
    const int wanted = query.limit - static_cast<int>(page.jobs.size());
    if (wanted <= 0 || page.bytes >= query.bytes) break;
    JobScan scan;
    const absl::StatusOr<std::vector<JobRow>> rows =
        read_rows(page.next, std::min(kRowsAtOnce, wanted), query.bytes - page.bytes, scan);
    if (!rows.ok()) return rows.status();
    for (const JobRow& row : *rows) {
      page.bytes += row.job.size();
      absl::StatusOr<StoredJob> job = to_job(row);
      // Otherwise the store has reported the job.
      if (job.ok()) page.jobs.push_back(*std::move(job));
    }
    seen += scan.seen;
    page.next = scan.end;
    if (!page.next.has_value()) break;
  }
  return page;
}

}  // namespace wan::server
