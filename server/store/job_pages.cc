#include "server/store/job_pages.h"

#include <algorithm>
#include <utility>

#include "server/store/filter_match.h"

namespace wan::server {

std::optional<CommonKey> CommonKeyOf(const JobQuery& query) {
  if (query.owner.has_value()) return CommonKey{"owner", *query.owner};
  if (const auto* const owner = EqualityOf(query.filter, JobField::kOwner)) {
    return CommonKey{"owner", owner->text};
  }
  if (query.order.field != JobOrderField::kCreateTime) return std::nullopt;
  if (const auto* const state = EqualityOf(query.filter, JobField::kState)) {
    return CommonKey{"state", state->number};
  }
  if (const auto* const model = EqualityOf(query.filter, JobField::kModel)) {
    return CommonKey{"model", model->text};
  }
  return std::nullopt;
}

std::string_view ColumnOf(JobOrderField field, std::string_view number) {
  switch (field) {
    case JobOrderField::kEndTime:
      return "end_time";
    case JobOrderField::kPriority:
      return "priority";
    default:
      return number;
  }
}

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
