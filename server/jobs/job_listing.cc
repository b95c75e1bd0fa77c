#include "server/jobs/job_listing.h"

#include <algorithm>

#include "server/jobs/list_query.h"

namespace wan::server {

JobListing::JobListing(Parts parts, wan::v1::ListJobsRequest request, JobQuery query,
                       std::string key)
    : parts_(parts),
      request_(std::move(request)),
      query_(std::move(query)),
      filtered_(query_.filter.kind != JobFilter::Kind::kAll),
      key_(std::move(key)) {}

absl::StatusOr<bool> JobListing::Step() {
  absl::StatusOr<JobPage> page = parts_.store.List(query_);
  if (!page.ok()) return page.status();
  query_.after = page->next;
  if (end_.has_value() && !page->jobs.empty()) {
    response_.set_next_page_token(PageTokenOf(request_, *end_, key_));
    return true;
  }
  for (StoredJob& stored : page->jobs) {
    std::optional<wan::v1::Job> shown = ShownOf(std::move(stored));
    if (!shown.has_value()) continue;
    wan::v1::Job& job = *response_.add_jobs();
    job = *std::move(shown);
    parts_.retention.policy().SetExpireTime(job);
  }
  if (!page->next.has_value()) return true;
  query_.limit -= static_cast<int>(page->jobs.size());
  query_.bytes -= std::min(query_.bytes, page->bytes);
  if (!end_.has_value() && (query_.limit == 0 || query_.bytes == 0)) {
    end_ = page->next;
    query_.limit = 1;  // read one job, only to find out whether another page follows
    query_.bytes = 1;
  }
  return false;
}

std::optional<wan::v1::Job> JobListing::ShownOf(StoredJob stored) const {
  const std::string& name = stored.job.name();
  JobStates::View live = parts_.states.Look(name);
  if (live.hidden) return std::nullopt;
  if (!live.job.has_value()) return std::move(stored.job);
  // The filter was applied to the stored state, so show the current job only if its state equals
  // the stored one. Otherwise show the stored job; but leave the job out if it has ended in the
  // store while the end is not on the disk yet.
  if (!filtered_ || live.job->state() == stored.job.state()) return std::move(live.job);
  return IsFinal(stored.job.state()) ? std::nullopt : std::optional(std::move(stored.job));
}

}  // namespace wan::server
