#include "server/store/job_store.h"

#include <utility>

#include "server/store/await.h"

namespace wan::server {

absl::Status JobStore::Apply(std::span<const JobChange> changes) {
  return AwaitDone<absl::Status>([&](Done done) { Apply(changes, std::move(done)); });
}

bool IsFinal(wan::v1::JobState state) {
  return state == wan::v1::JOB_STATE_COMPLETED || state == wan::v1::JOB_STATE_FAILED ||
         state == wan::v1::JOB_STATE_CANCELLED;
}

}  // namespace wan::server
