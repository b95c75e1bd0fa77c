#include "server/store/job_store.h"

#include <utility>

#include "server/store/await.h"

namespace wan::server {

absl::Status JobStore::InsertAll(std::span<const JobAddition> additions) {
  return AwaitDone<absl::Status>([&](Done done) { InsertAll(additions, std::move(done)); });
}

absl::Status JobStore::Insert(const StoredJob& job, const std::string& image,
                              std::span<const wan::v1::Event> events) {
  JobAddition addition{job, nullptr, {events.begin(), events.end()}};
  if (!image.empty()) addition.image = std::make_shared<const std::string>(image);
  return InsertAll(std::span(&addition, 1));
}

absl::Status JobStore::Remove(std::string_view job) {
  return AwaitDone<absl::Status>([&](Done done) { Remove(job, std::move(done)); });
}

absl::Status JobStore::Apply(std::span<const JobChange> changes) {
  return AwaitDone<absl::Status>([&](Done done) { Apply(changes, std::move(done)); });
}

bool IsFinal(wan::v1::JobState state) {
  return state == wan::v1::JOB_STATE_COMPLETED || state == wan::v1::JOB_STATE_FAILED ||
         state == wan::v1::JOB_STATE_CANCELLED;
}

}  // namespace wan::server
