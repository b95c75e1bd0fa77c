// Writes of a JobStore that end by a callback, for tests: each returns when it has ended.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "server/store/await.h"
#include "server/store/job_store.h"

namespace wan::server {

inline absl::Status InsertAllInto(JobStore& store, std::span<const JobAddition> additions) {
  return AwaitDone<absl::Status>(
      [&](JobStore::Done done) { store.InsertAll(additions, std::move(done)); });
}

// Adds one job; an empty image is none.
inline absl::Status InsertInto(JobStore& store, const StoredJob& job, const std::string& image,
                               std::span<const wan::v1::Event> events) {
  JobAddition addition{job, {}, {events.begin(), events.end()}};
  if (!image.empty()) addition.inputs.image = std::make_shared<const std::string>(image);
  return InsertAllInto(store, std::span(&addition, 1));
}

// Returns the image of the job's request; empty: none.
inline std::string ImageIn(JobStore& store, std::string_view job) {
  const absl::StatusOr<JobInputs> inputs = store.Inputs(job);
  return inputs.ok() && inputs->image != nullptr ? *inputs->image : std::string();
}

inline absl::Status RemoveFrom(JobStore& store, std::string_view job) {
  return AwaitDone<absl::Status>([&](JobStore::Done done) { store.Remove(job, std::move(done)); });
}

inline absl::Status ApplyTo(JobStore& store, std::span<const JobChange> changes) {
  return AwaitDone<absl::Status>(
      [&](JobStore::Done done) { store.Apply(changes, std::move(done)); });
}

}  // namespace wan::server
