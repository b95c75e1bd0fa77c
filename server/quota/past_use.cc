#include "server/quota/past_use.h"

#include <vector>

#include "absl/status/statusor.h"
#include "server/conversion/convert.h"

namespace wan::server {

absl::Status VisitUseSince(JobStore& store, absl::Time since,
                           const std::function<void(const PrincipalUse&)>& visit) {
  const absl::StatusOr<std::vector<PrincipalUse>> removed = store.UseOfRemoved(since);
  if (!removed.ok()) return removed.status();
  for (const PrincipalUse& use : *removed) visit(use);
  JobQuery query;
  query.filter.kind = JobFilter::Kind::kCompare;
  query.filter.field = JobField::kEndTime;
  query.filter.op = FilterOperator::kGreaterOrEqual;
  query.filter.number = absl::ToUnixMicros(since);
  // Begin the listing at `since`, so that jobs that ended before are not read.
  query.order = {JobOrderField::kEndTime, /*descending=*/false};
  query.after = JobPlace{query.filter.number, 0};
  query.limit = 256;
  do {
    const absl::StatusOr<JobPage> page = store.List(query);
    if (!page.ok()) return page.status();
    for (const StoredJob& stored : page->jobs) {
      const wan::v1::Job& job = stored.job;
      visit({job.owner(), absl::Seconds(job.device_seconds()), ToTime(job.end_time())});
    }
    query.after = page->next;
  } while (query.after.has_value());
  return absl::OkStatus();
}

}  // namespace wan::server
