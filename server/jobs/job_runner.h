// Takes jobs from the queue and runs their attempts in one device group.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "server/jobs/job_states.h"
#include "server/jobs/runner_parts.h"

namespace wan::server {

// Call it only on the thread of the group's executor, except least_free_bytes().
class JobRunner {
 public:
  explicit JobRunner(RunnerParts parts) : parts_(std::move(parts)) {}

  // Runs the next job, from its latest savepoint if it has one, until it completes, fails, is
  // cancelled or is requeued. Returns false if no job can run now. If the device is lost, the
  // attempt counts as lost and the job goes back to the queue. If the data folder refuses writes,
  // the job goes back to the queue without counting a lost attempt, and no job begins until the
  // folder takes writes again.
  bool RunNext();

  // A job may begin only if more bytes than this are free, because the last job ran out of space
  // with this many. 0: no condition. May be called from any thread.
  uint64_t least_free_bytes() const { return least_free_bytes_; }

 private:
  // Puts the job back into the queue and reports to StorageWatch that the data folder refuses
  // writes. Returns the job's new state.
  wan::v1::JobState Postpone(const std::string& job, const absl::Status& problem);
  // Returns why the data folder refused the attempt's files; OK if something else ended the
  // attempt with `result`.
  absl::Status StorageProblem(const Attempt& attempt, const absl::Status& result);
  // Removes the attempt's files, and the job's savepoint if `state`, the job's new state, is final.
  void Tidy(const wan::v1::Job& job, wan::v1::JobState state);

  const RunnerParts parts_;
  std::atomic<uint64_t> least_free_bytes_ = 0;
  // By job: how often the disk refused its files although a later probe succeeded.
  std::map<std::string, int> refusals_;
};

}  // namespace wan::server
