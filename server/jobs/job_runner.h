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

// Call the functions, except least_free_bytes(), only on the thread of the group's executor.
class JobRunner {
 public:
  explicit JobRunner(RunnerParts parts) : parts_(std::move(parts)) {}

  // Runs the next job, from its latest savepoint if it has one, until it completes, fails, is
  // cancelled or is requeued. Returns false if no job can run now. If the device is lost, the
  // attempt counts as lost and the job goes back to the queue. If the data folder refuses writes,
  // the job goes back to the queue without counting a lost attempt, and no job begins until the
  // folder takes writes again.
  bool RunNext();

  // A job may begin only if the disk has more free bytes than this number, because the last job ran
  // out of space with this number. 0 means that a job may always begin. Any thread may call
  // least_free_bytes.
  uint64_t least_free_bytes() const { return least_free_bytes_; }

 private:
  // Puts the job back into the queue and reports to StorageWatch that the data folder refuses
  // writes. Returns the job's new state.
  wan::v1::JobState Postpone(const std::string& job, const absl::Status& problem);
  // Returns why the data folder is the cause of an attempt's failure; OK if it is not.
  absl::Status StorageProblem(const Attempt& attempt, const absl::Status& result);
  // Removes the attempt's files, and the job's savepoint if `state`, the job's new state, is final.
  void Tidy(const wan::v1::Job& job, wan::v1::JobState state);

  const RunnerParts parts_;
  std::atomic<uint64_t> least_free_bytes_ = 0;
  // How often the disk refused a job's files although a later probe succeeded; the key is the job.
  std::map<std::string, int> refusals_;
};

}  // namespace wan::server
