#include "server/quota/recent_jobs.h"

#include <utility>

#include "absl/status/statusor.h"

namespace wan::server {

absl::Status VisitJobsEndedSince(JobStore& store, absl::Time since,
                                 const std::function<void(const wan::v1::Job&)>& visit) {
  JobQuery query;
  query.filter.kind = JobFilter::Kind::kCompare;
  query.filter.field = JobField::kEndTime;
  query.filter.op = FilterOperator::kGreaterOrEqual;
  query.filter.number = absl::ToUnixMicros(since);
  query.limit = 256;
  do {
    const absl::StatusOr<JobPage> page = store.List(query);
    if (!page.ok()) return page.status();
    for (const StoredJob& stored : page->jobs) visit(stored.job);
    query.after = page->next;
  } while (query.after.has_value());
  return absl::OkStatus();
}

}  // namespace wan::server
